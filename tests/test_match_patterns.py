from __future__ import annotations

from lmdiag.match.matcher import Matcher
from lmdiag.match.patterns import Patterns
from lmdiag.model import Match, MatchRule

CODE = MatchRule("code", "", (), (), r"disk (?P<disk>\w+) is (?:(?P<state>full)|broken)")
RUNAWAY = MatchRule("runaway", "", (), (), r"(a|aa|aaa)+$")
ANY = "a" * 40 + "b"


def always(rule: MatchRule) -> bool:
    """Let every rule fit."""
    return True


def test_named_groups_are_fields() -> None:
    patterns = Patterns([CODE])
    assert patterns.match("The disk sda is full.", always) == Match("code", (("disk", "sda"), ("state", "full")), "exact")
    assert patterns.match("The disk sda is broken.", always) == Match("code", (("disk", "sda"),), "exact")
    assert patterns.match("The disk is fine.", always) is None


def test_a_rule_that_does_not_fit_is_not_tried() -> None:
    assert Patterns([CODE]).match("disk a is full", lambda rule: rule.card != "code") is None


def test_a_pattern_that_runs_away_is_muted_and_counted_and_harms_no_other() -> None:
    patterns = Patterns([RUNAWAY, CODE])
    for _ in range(3):
        assert patterns.match(ANY * 20 + " disk a is full", always) is not None
    assert patterns.muted == {"runaway": 3}


def test_templates_go_first_and_types_count() -> None:
    matcher = Matcher(
        [
            MatchRule("template", "disk {disk} is full", ("OSError",)),
            CODE._replace(types=("ValueError",)),
        ]
    )
    assert matcher.match("OSError", "disk a is full", ()) == Match("template", (("disk", "a"),), "exact")
    found = matcher.match("ValueError", "the disk a is full", ())
    assert found is not None
    assert found.card == "code"
    assert matcher.match("KeyError", "the disk a is full", ()) is None
