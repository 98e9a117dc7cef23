"""Where reports go, and how they look there."""

from __future__ import annotations

import io
import json

import pytest
from report_samples import MATCHED, cards

from lmdiag.errors import CardError
from lmdiag.model import Card, Incident, Loop
from lmdiag.watch.outlets import Outlet


def told(incident: Incident, **how: object) -> str:
    """What is printed of one report."""
    out = io.StringIO()
    Outlet(out, cards, **{"format": "text", **how}).tell(incident)  # type: ignore[arg-type]
    return out.getvalue()


def test_json_is_one_line_with_the_state_and_the_loop() -> None:
    text = told(MATCHED._replace(state="repeated", loop=Loop(5, 720.0)), format="jsonl")
    assert text.count("\n") == 1
    data = json.loads(text)
    assert (data["state"], data["loop"]) == ("repeated", {"times": 5, "seconds": 720.0})


def test_an_incident_that_opens_is_told_whole() -> None:
    text = told(MATCHED._replace(state="opened"))
    assert "What to change" in text
    assert MATCHED.id in text


def test_one_that_repeats_is_told_in_short_and_says_that_it_loops() -> None:
    text = told(MATCHED._replace(state="repeated", occurrences=5, loop=Loop(5, 720.0)))
    assert "5 times so far" in text
    assert "The same cause 5 times in 12 minutes: a restart will not help." in text
    assert "What to change" not in text


def test_one_that_is_over_is_told_in_a_few_lines() -> None:
    text = told(MATCHED._replace(state="resolved"))
    assert text.startswith("RESOLVED")
    assert len(text.strip().splitlines()) < 8


def test_a_card_that_is_gone_costs_its_text_only() -> None:
    """Its file broke, or it was taken out, after the incident had been found."""

    def gone(card_id: str) -> Card:
        raise CardError(f"there is no card {card_id!r}")

    out = io.StringIO()
    Outlet(out, gone, format="text").tell(MATCHED._replace(state="opened"))
    assert MATCHED.title in out.getvalue()


@pytest.mark.parametrize(("state", "severity", "mark"), [("opened", "critical", "<2>"), ("repeated", "warning", "<4>"), ("resolved", "critical", "<6>")])  # fmt: skip
def test_in_the_journal_every_line_has_its_priority(state: str, severity: str, mark: str) -> None:
    lines = told(MATCHED._replace(state=state, severity=severity), journal=True).splitlines()
    assert lines
    assert all(line.startswith(mark) for line in lines if line)


def test_what_the_log_says_is_no_markup_and_no_command_for_the_terminal() -> None:
    hostile = MATCHED._replace(title="[bold]x[/nope] \x1b[31m", source="\x1b]0;evil\x07.log", state="resolved")
    text = told(hostile)
    assert "[bold]x[/nope]" in text
    assert "\x1b" not in text
    assert "\x07" not in text
