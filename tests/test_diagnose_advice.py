from __future__ import annotations

from typing import ClassVar

import pytest
from helpers import NoCards

from lmdiag.diagnose.advice import asked_for, personal, reason
from lmdiag.diagnose.known import known_values
from lmdiag.match.settings import Settings, Table
from lmdiag.model import Advice, Card, Case, ClueSeen, Edit, Facts, Solution

FACTS = Facts(vllm_version="0.11.1", platform="rocm", arguments=(("enforce_eager", "True"), ("max_model_len", "8192")))
SEEN = ClueSeen("inspect", 7, "Error in inspecting model architecture 'X'", (("name", "'X'"),))
KNOWN = known_values([("length", "4096")], FACTS, "died", [SEEN])
TABLE = Table(("0.9.0", "0.11.1", "0.12.0"), {"flag --new": (("0.12.0", "0.12.0"),), "flag --max-num-seqs": (("0.9.0", "0.12.0"),)})


class Cards(NoCards):
    """Cards with a table of settings."""

    settings: ClassVar[Settings] = {"vllm": TABLE}


def advised(*solutions: Solution, facts: Facts = FACTS) -> tuple[Advice, ...]:
    return personal(solutions, KNOWN, facts, Cards())


def card(*cases: Case, solutions: tuple[Solution, ...] = ()) -> Card:
    return Card("c", "T", "error", "startup", (), (), "M.", "T.", (), solutions, cases=cases)


GIVEN = {
    "nothing asked": (Solution("Do it."), True),
    "contradicted": (Solution("Do it.", unless="platform == rocm"), False),
    "not contradicted": (Solution("Do it.", unless="platform == cuda"), True),
    "an unknown fact contradicts nothing": (Solution("Do it.", unless="lmcache_version >= 0.3.0"), True),
    "asked for": (Solution("Do it.", when="log.inspect"), True),
    "asked for and not there": (Solution("Do it.", when="log.other"), False),
    "asked for and contradicted": (Solution("Do it.", when="log.inspect", unless="outcome == died"), False),
    "set already": (Solution("Do it.", (("--enforce-eager", ""),)), False),
    "set to another value": (Solution("Do it.", (("--max-model-len", "{length}"),)), True),
    "set to the value that it has": (Solution("Do it.", (("--max-model-len", "{length * 2}"),)), False),
    "nothing left to say": (Solution("{nothing} fits."), False),
}


@pytest.mark.parametrize(("solution", "given_"), GIVEN.values(), ids=GIVEN)
def test_advice_that_does_not_fit_this_server_is_left_out(solution: Solution, *, given_: bool) -> None:
    assert (len(advised(solution)) == 1) is given_


def test_solutions_keep_their_order_and_get_the_values() -> None:
    found = advised(
        Solution("Set {length}. Or {other}.", (("--max-model-len", "{length / 2}"), ("VLLM_X", "1"))),
        Solution("Not here.", unless="platform == rocm"),
        Solution("Restart.", (), "disruptive"),
    )
    edits = (
        Edit("command line", "--max-model-len 8192", "--max-model-len 2048"),
        Edit("environment", None, "VLLM_X=1"),
    )
    assert found == (
        Advice("Set 4096.", (("--max-model-len", "2048"), ("VLLM_X", "1")), "safe", edits),
        Advice("Restart.", (), "disruptive"),
    )


def test_a_change_with_an_unknown_value_is_left_out_whole() -> None:
    found = advised(Solution("Set it.", (("--max-num-seqs", "{other}"), ("VLLM_X", "1"))))
    assert found == (Advice("Set it.", (), "safe"),)


def test_a_setting_that_the_release_does_not_know_is_not_advised() -> None:
    new, old = Solution("New way.", (("--new", "1"),)), Solution("Old way.", (("--max-num-seqs", "1"),))
    assert [item.text for item in advised(new, old)] == ["Old way."]
    assert [item.text for item in advised(new, old, facts=FACTS._replace(vllm_version="0.12.0"))] == ["New way.", "Old way."]
    assert [item.text for item in advised(new, old, facts=FACTS._replace(vllm_version=None))] == ["New way.", "Old way."]


def test_a_setting_that_the_release_does_not_know_may_be_taken_away() -> None:
    facts = FACTS._replace(arguments=(("new", "1"),))
    (found,) = advised(Solution("Drop it.", (("--new", "unset"),)), facts=facts)
    assert found.edits == (Edit("command line", "--new 1", None),)


def test_where_nothing_else_is_left_it_is_said() -> None:
    assert advised(Solution("New way.", (("--new", "1"),))) == (
        Advice("New way. (vLLM 0.11.1, which runs here, does not know `--new`.)", (), "safe"),
    )


def test_the_first_case_that_the_log_shows_is_the_reason() -> None:
    cases = (Case("log.other", "No."), Case("log.inspect", "An import of {log.inspect.name} failed."), Case("platform", "Late."))
    assert reason(card(*cases), KNOWN) == "An import of 'X' failed."
    assert reason(card(*cases[:1]), KNOWN) is None
    assert asked_for(card(*cases), KNOWN, [SEEN]) == (SEEN,)
    assert asked_for(card(cases[2]), KNOWN, [SEEN]) == ()


def test_a_clue_that_a_text_quotes_is_shown() -> None:
    assert asked_for(card()._replace(meaning="It is {log.inspect.name}. Yes."), KNOWN, [SEEN]) == (SEEN,)


def test_a_clue_that_advice_rests_on_is_shown() -> None:
    assert asked_for(card(solutions=(Solution("Do.", when="log.inspect"),)), KNOWN, [SEEN]) == (SEEN,)
    assert asked_for(card(solutions=(Solution("Do.", when="log.inspect and outcome == running"),)), KNOWN, [SEEN]) == ()


@pytest.mark.parametrize("value", ["0.03", "0.05", "[redacted]", "{'a': 'x… […61 more characters]"])
def test_a_value_that_is_no_amount_is_not_advised(value: str) -> None:
    known = {**KNOWN, "argument.x": value}
    computed = Solution("Set it.", (("--y", "{argument.x - 0.05}"),))
    plain = Solution("Set it.", (("--y", "{argument.x}"),))
    found = personal([computed if value[0] == "0" else plain], known, FACTS, Cards())
    assert found == (Advice("Set it.", (), "safe"),)
