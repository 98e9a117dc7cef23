"""One source through the pipeline: looks between reads, saved states, lines of rotated files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers import NoCards
from hypothesis import given, settings
from hypothesis import strategies as st
from transports import chunks

from lmdiag.model import Incident
from lmdiag.pipeline import Pipeline
from lmdiag.read.lines import Splitter
from lmdiag.watch.stream import Stream

LOGS = {path.stem: path.read_bytes() for path in sorted((Path(__file__).parent / "logs").glob("*.log"))}


class HandFed:
    """A source whose bytes the test feeds itself."""

    name = "server.log"
    required = True
    problem = ""
    ended = False

    def __init__(self) -> None:
        self.generation = 0

    def read(self) -> bytes:
        """Give nothing."""
        return b""

    def position(self) -> dict[str, Any]:
        """Know no place."""
        return {}

    def fileno(self) -> int | None:
        """Have no descriptor."""
        return None

    def lag(self) -> int:
        """Never be behind."""
        return 0

    def lost(self) -> list[tuple[str, int]]:
        """Lose nothing."""
        return []

    def close(self) -> None:
        """Hold nothing."""


def scanned(data: bytes) -> list[Incident]:
    """What a scan finds."""
    splitter, pipeline = Splitter("server.log"), Pipeline("server.log", NoCards())
    for line in (*splitter.feed(data), *splitter.finish()):
        pipeline.feed(line)
    return pipeline.close()


def watched(data: bytes, cuts: list[int], *, save: bool, rotate: bool) -> list[Incident]:
    """What a stream shows in the end that was looked at, saved and loaded after each chunk."""
    source = HandFed()
    stream = Stream(source, NoCards())
    for chunk in chunks(data, cuts):
        stream.feed(chunk, 0.0)
        stream.findings()
        source.generation += rotate
        if save:
            stream = Stream(source, NoCards(), saved=stream.save())
            assert not stream.fresh
    return [finding.build() for finding in stream.findings()]


def placeless(incidents: list[Incident]) -> list[Incident]:
    """Without the lines, which are those of the file that an incident stands in."""
    return [item._replace(first_line=1, last_line=1) for item in incidents]


@given(
    name=st.sampled_from(sorted(LOGS)), cuts=st.lists(st.integers(0, 60_000), max_size=15), save=st.booleans(), rotate=st.booleans()
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_it_shows_what_a_scan_finds(name: str, cuts: list[int], save: bool, rotate: bool) -> None:
    """However the log arrives, and however often it is looked at, saved, loaded or rotated meanwhile."""
    found = watched(LOGS[name], cuts, save=save, rotate=rotate)
    assert placeless(found) == placeless(scanned(LOGS[name]))
    assert rotate or found == scanned(LOGS[name])


def test_a_look_does_not_change_what_comes_later() -> None:
    """A traceback is looked at when half of it was written."""
    data = LOGS["mla-serde-start-failed"]
    half = data.find(b"ValueError")
    stream = Stream(HandFed(), NoCards())
    stream.feed(data[:half], 0.0)
    stream.findings()
    stream.feed(data[half:], 1.0)
    assert [finding.build() for finding in stream.findings()] == scanned(data)


def test_lines_are_those_of_the_file_after_a_rotation() -> None:
    source = HandFed()
    stream = Stream(source, NoCards())
    stream.feed(b"INFO 12-01 02:00:00 [x.py:1] hello\n" * 500, 0.0)
    source.generation += 1
    data = LOGS["usage-error"]
    stream.feed(data, 0.0)
    [found] = [finding.build() for finding in stream.findings()]
    [expected] = scanned(data)
    assert (found.first_line, found.last_line) == (expected.first_line, expected.last_line)
    assert found.id != expected.id  # the same line of an earlier file would be another incident


def test_lines_before_the_start_count() -> None:
    stream = Stream(HandFed(), NoCards(), lines_before=1000)
    stream.feed(LOGS["usage-error"], 0.0)
    [found] = [finding.build() for finding in stream.findings()]
    assert found.first_line == 1000 + scanned(LOGS["usage-error"])[0].first_line


def test_chatter_gives_nothing_to_look_at() -> None:
    stream = Stream(HandFed(), NoCards())
    stream.feed(b'INFO:     10.0.0.1:5000 - "GET /health HTTP/1.1" 200 OK\n' * 1000, 5.0)
    assert stream.changed_at is None
    stream.feed(b"ERROR 12-01 02:00:00 [x.py:1] boom\n", 6.0)
    assert stream.changed_at == 6.0
    stream.findings()
    assert stream.changed_at is None


def test_an_unfinished_look_leaves_it_to_be_looked_at() -> None:
    stream = Stream(HandFed(), NoCards())
    stream.feed(b"ERROR 12-01 02:00:00 [x.py:1] boom\n", 6.0)
    stream.findings(settled=False)
    assert (stream.moved, stream.changed_at) == (False, 6.0)


def test_a_state_that_cannot_be_used_is_told() -> None:
    assert Stream(HandFed(), NoCards(), saved=b"other").fresh
