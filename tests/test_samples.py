from __future__ import annotations

from report_samples import CARD
from shapes import raised

from lmdiag.match.cards import Problem
from lmdiag.model import Card, Frame, MatchRule, Sample, Solution
from lmdiag.samples import CardSet, diagnose, sample_problems

LOG = "ValueError: serde a of 3 is not naive\n"


def card(name: str = "serde-card", message: str = "serde {serde} of {total} is not naive", **changes: object) -> Card:
    base = CARD._replace(id=name, rules=(MatchRule(name, message, ("ValueError",)),), path=f"{name}.toml")
    samples = (Sample(LOG, (("serde", "a"), ("total", "3"))),)
    return base._replace(
        samples=samples, near_misses=(Sample("ValueError: serde is naive\n"),), related=(), aliases=()
    )._replace(**changes)  # type: ignore[arg-type]


def problems(*cards: Card) -> list[tuple[str, str]]:
    """(path, key) of what is wrong."""
    return [(problem.path, problem.key) for problem in sample_problems(cards)]


def test_a_card_that_keeps_its_promise_has_no_problem() -> None:
    assert problems(card()) == []


def test_a_sample_runs_through_the_whole_pipeline() -> None:
    log = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "serde a of 3 is not naive")
    assert problems(card(samples=(Sample(log, (("serde", "a"), ("total", "3"))),))) == []


def test_a_sample_that_does_not_match_is_told() -> None:
    (problem,) = sample_problems([card(samples=(Sample("ValueError: something else\n"),))])
    assert isinstance(problem, Problem)
    assert (problem.path, problem.key) == ("serde-card.toml", "sample[0].log")
    assert "something else" in problem.message


def test_a_sample_in_which_nothing_failed_is_told() -> None:
    (problem,) = sample_problems([card(samples=(Sample("INFO 12-01 02:00:00 [a.py:1] fine\n"),))])
    assert "nothing" in problem.message


def test_the_number_of_the_sample_is_told() -> None:
    good = card().samples[0]
    assert problems(card(samples=(good, Sample("KeyError: x\n"), good))) == [("serde-card.toml", "sample[1].log")]


def test_other_fields_are_told() -> None:
    (problem,) = sample_problems([card(samples=(Sample(LOG, (("serde", "b"), ("total", "3"))),))])
    assert problem.key == "sample[0].fields"
    assert "'serde': 'a'" in problem.message


def test_missing_fields_are_told() -> None:
    assert problems(card(samples=(Sample(LOG),))) == [("serde-card.toml", "sample[0].fields")]


def test_a_near_miss_that_fires_is_told() -> None:
    assert problems(card(near_misses=(Sample("ValueError: no\n"), Sample(LOG)))) == [
        ("serde-card.toml", "near_miss[1].log")
    ]


def test_a_sample_that_another_card_takes_is_told() -> None:
    """The more exact template wins, and then the first card's sample is not its own."""
    other = card("exact-card", "serde a of {total} is not naive", samples=(Sample(LOG, (("total", "3"),)),))
    (problem,) = sample_problems([card(), other])
    assert (problem.path, problem.key) == ("serde-card.toml", "sample[0].log")
    assert "exact-card" in problem.message


def test_a_sample_that_holds_another_failure_too_is_told() -> None:
    head = "(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] "
    log = raised(head, "ValueError", "serde a of 3 is not naive") + raised(head, "ValueError", "quite another failure")
    (problem,) = sample_problems([card(samples=(Sample(log, (("serde", "a"), ("total", "3"))),))])
    assert problem.key == "sample[0].log"
    assert "quite another failure" in problem.message


def test_the_set_gives_its_cards_and_matches() -> None:
    cards = CardSet([card()])
    assert cards.card("serde-card") == card()
    match = cards.match("ValueError", "serde a of 3 is not naive", [Frame("/a/x.py", 1, "f")])
    assert match is not None
    assert (match.card, dict(match.fields), match.confidence) == ("serde-card", {"serde": "a", "total": "3"}, "exact")
    assert cards.match("KeyError", "serde a of 3 is not naive", []) is None
    assert cards.match("ValueError", "anything", []) is None


def test_a_log_gives_its_incidents() -> None:
    (incident,) = diagnose(LOG.replace("\n", "\r\n"), CardSet([card()]))
    assert (incident.card, incident.fields, incident.first_line) == ("serde-card", (("serde", "a"), ("total", "3")), 1)
    assert diagnose("", CardSet([])) == []


def test_a_change_that_the_advice_does_not_hold_is_told() -> None:
    advised = card(solutions=(Solution("Set it.", (("--x", "{total * 2}"),)),))
    good = advised.samples[0]
    assert problems(advised._replace(samples=(good._replace(change=(("--x", "6"),)),))) == []
    (problem,) = sample_problems([advised._replace(samples=(good._replace(change=(("--x", "7"),)),))])
    assert (problem.key, problem.message) == ("sample[0].change.--x", "the advice has ['6'], not '7'")
