from __future__ import annotations

import io
import re

import pytest
from report_samples import CARD, MATCHED, UNMATCHED, with_message
from rich.console import Console

from lmdiag.watch.counters import DaemonStatus, IncidentStatus, SourceStatus
from lmdiag.watch.live import LiveView

SOURCE = SourceStatus("/var/log/vllm/server.log", "file", lag=2048, lines_per_second=12.0, last_line_at=1000.0)
INCIDENT = IncidentStatus("i", "opened", "critical", "a-card", "KV cache too small", "server.log", 3, 1.0, 1.0, "died")
STATUS = DaemonStatus(1, "1.2.3", 0.0, 1000.0, (SOURCE,), (INCIDENT,), ready=True)


class Terminal:
    """A view on a made-up terminal, and its clock."""

    def __init__(self, width: int = 100, height: int = 30) -> None:
        self.now = 0.0
        self.file = io.StringIO()
        console = Console(file=self.file, force_terminal=True, width=width, height=height, color_system="standard")
        self.view = LiveView(console, clock=lambda: self.now)

    def show(self, status: DaemonStatus) -> str:
        """What an update writes, without colours and cursor movements; "" if it writes nothing."""
        start = len(self.file.getvalue())
        shown = self.view.update(status)
        written = self.file.getvalue()[start:]
        assert shown == bool(written)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", written)


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_sources_and_open_incidents(terminal: Terminal) -> None:
    text = terminal.show(STATUS)
    assert re.search(r"source +lines/s +behind +last line", text)
    assert re.search(r"/var/log/vllm/server\.log +12/s +2\.0 kB +\d\d:\d\d:\d\d", text)
    assert "CRITICAL KV cache too small (3 times) in server.log" in text
    assert "1 source · 1 open incident" in text


def test_nothing_is_written_while_nothing_changes(terminal: Terminal) -> None:
    terminal.show(STATUS)
    for _ in range(10):
        terminal.now += 1
        assert terminal.show(STATUS._replace(now=STATUS.now + terminal.now)) == ""


def test_at_most_two_refreshes_a_second(terminal: Terminal) -> None:
    written = 0
    for number in range(100):
        terminal.now = number / 25
        written += bool(terminal.show(STATUS._replace(queue=number)))
    assert written == 8


def test_what_was_held_back_is_shown_by_the_next_update(terminal: Terminal) -> None:
    terminal.show(STATUS)
    changed = STATUS._replace(queue=9)
    assert terminal.show(changed) == ""
    terminal.now = 1.0
    assert "9 reports waiting" in terminal.show(changed)


def test_resolved_incidents_are_not_open(terminal: Terminal) -> None:
    text = terminal.show(STATUS._replace(incidents=(INCIDENT._replace(state="resolved"),)))
    assert "0 open incidents" in text
    assert "KV cache" not in text


@pytest.mark.parametrize("width", [20, 40, 69, 70, 100, 300])
def test_every_width_folds(width: int) -> None:
    long = SOURCE._replace(name="/var/log/pods/" + "very-long-name-" * 8, problem="permission denied")
    text = Terminal(width=width).show(STATUS._replace(sources=(long, SOURCE)))
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    whole = re.sub(r"\s", "", text)
    assert "permissiondenied" in whole or width >= 70
    assert "server.log" in whole
    assert "KVcachetoosmall" in whole


def test_a_screen_is_never_filled(terminal: Terminal) -> None:
    many = tuple(SOURCE._replace(name=f"{number}.log", last_line_at=float(number)) for number in range(200))
    broken = SOURCE._replace(name="broken.log", problem="it does not exist", last_line_at=None)
    text = terminal.show(STATUS._replace(sources=(*many, broken), incidents=(INCIDENT,) * 50))
    assert len(text.splitlines()) <= 25
    assert "201 sources (10 shown)" in text
    assert "and 40 more" in text
    assert text.index("broken.log") < text.index("199.log") < text.index("198.log")


def test_text_of_logs_is_neither_markup_nor_a_command(terminal: Terminal) -> None:
    hostile = "[/usr/lib] [red]x[/red]\x1b[2J\x1b]0;t\x07\u202e"
    source = SOURCE._replace(name=hostile + "name", problem=hostile + "problem")
    terminal.show(STATUS._replace(sources=(source,), incidents=(INCIDENT._replace(title=hostile, source=hostile),)))
    terminal.view.print_report(with_message(hostile + "message"))
    written = terminal.file.getvalue()
    assert "\x1b[2J" not in written
    assert "\x1b]0" not in written
    assert "\u202e" not in written
    assert re.sub(r"\x1b\[[0-9;]*m", "", written).count("[/usr/lib] [red]x[/red]") >= 4


def test_reports_stand_above(terminal: Terminal) -> None:
    terminal.show(STATUS)
    start = len(terminal.file.getvalue())
    terminal.view.print_report(MATCHED, CARD)
    written = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", terminal.file.getvalue()[start:])
    assert CARD.title in written
    assert written.index("What to change") < written.index("1 source · 1 open incident")


def test_commands_of_a_report_are_not_broken() -> None:
    terminal = Terminal(width=40)
    terminal.view.print_report(UNMATCHED)
    assert re.search(r"lmdiag cards new .*\n", re.sub(r"\x1b\[[0-9;]*m", "", terminal.file.getvalue()))


def test_the_terminal_gets_its_cursor_back(terminal: Terminal) -> None:
    terminal.show(STATUS)
    assert "\x1b[?25l" in terminal.file.getvalue()
    terminal.view.stop()
    terminal.view.stop()
    assert terminal.file.getvalue().rindex("\x1b[?25h") > terminal.file.getvalue().rindex("\x1b[?25l")
