"""Entries of the journal: each message once, whole, wherever the reader was ended."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.read.journal_entries import MAX_ENTRY, Entries


class Piece(NamedTuple):
    """A piece of a line that one of three processes writes."""

    stream: str
    text: bytes
    cut: bool


PIECES = st.lists(st.builds(Piece, st.sampled_from("abc"), st.binary(min_size=1, max_size=3), st.booleans()), max_size=40)


def row(number: int, message: Any, **more: str) -> bytes:
    """A line of journalctl."""
    return json.dumps({"__CURSOR": f"s=1;i={number:x};b=2;x=7", "MESSAGE": message, **more}).encode()


def rows(pieces: list[Piece]) -> list[bytes]:
    """The pieces as journalctl prints them."""
    return [
        row(n, list(piece.text), _STREAM_ID=piece.stream, _PID="1", **({"_LINE_BREAK": "line-max"} if piece.cut else {}))
        for n, piece in enumerate(pieces, 1)
    ]


def texts(data: bytes) -> list[str]:
    """The messages that were handed on."""
    found = [json.loads(line)["MESSAGE"] for line in data.splitlines()]
    return [bytes(text).decode("utf-8", "replace") if isinstance(text, list) else text for text in found]


def start(position: dict[str, Any] | None = None, **options: Any) -> Entries:
    """A reader that goes on at a position."""
    entries = Entries(position or {}, since=0, **options)
    entries.rewind()
    return entries


def joined(pieces: list[Piece]) -> list[str]:
    """The whole lines, in the order of their ends."""
    open_lines: dict[str, bytes] = {}
    found = []
    for piece in pieces:
        text = open_lines.pop(piece.stream, b"") + piece.text
        if piece.cut:
            open_lines[piece.stream] = text
        else:
            found.append(text.decode("utf-8", "replace"))
    return found


@given(PIECES)
def test_pieces_are_joined_by_stream(pieces: list[Piece]) -> None:
    entries = start()
    assert texts(b"".join(map(entries.take, rows(pieces)))) == joined(pieces)


@given(PIECES, st.sets(st.integers(0, 40)), st.booleans())
def test_nothing_is_twice_or_missing_after_restarts(pieces: list[Piece], ends: set[int], within: bool) -> None:
    """At each end another reader begins at the position, or the same one with another journalctl."""
    lines = rows(pieces)
    entries, place, data = start(), 0, b""
    while place < len(lines):
        data += entries.take(lines[place])
        place += 1
        if place in ends:
            ends = ends - {place}
            entries = entries if within else start(json.loads(json.dumps(entries.position())))
            cursor = entries.rewind()
            place = next((n for n, line in enumerate(lines) if cursor and json.loads(line)["__CURSOR"] == cursor), 0)
    assert texts(data) == joined(pieces)
    assert entries.lost() == []


def test_pieces_whose_rest_does_not_come_are_handed_on() -> None:
    """Before the marks of what came after them are forgotten: a reader that begins before them knows all the others."""
    entries = start()
    data = entries.take(row(1, "begun", _STREAM_ID="a", _LINE_BREAK="line-max"))
    numbers = range(2, 400)
    data += b"".join(entries.take(row(n, f"m{n}", _STREAM_ID="b")) for n in numbers)
    assert sorted(texts(data)) == sorted(["begun", *(f"m{n}" for n in numbers)])
    assert texts(data).index("begun") < 300


def test_many_streams_with_pieces_do_not_fill_the_memory() -> None:
    entries = start()
    data = b"".join(entries.take(row(n, "x", _STREAM_ID=str(n), _LINE_BREAK="line-max")) for n in range(1, 101))
    assert len(texts(data)) > 80


def test_an_endless_line_is_cut() -> None:
    entries = start()
    data = b"".join(entries.take(row(n, "x" * 49_152, _STREAM_ID="a", _LINE_BREAK="line-max")) for n in range(1, 101))
    assert data == b""
    data = entries.take(row(101, "end", _STREAM_ID="a"))
    (text,) = texts(data)
    assert 0.9 * MAX_ENTRY < len(text) < len(data) <= MAX_ENTRY
    assert entries.lost() == [("end of a line over 1 MiB", 100 * 49_152 + 3 - len(text))]


def test_the_marks_are_bounded() -> None:
    entries = start()
    for n in range(1, 2000):
        entries.take(row(n, "x"))
    assert len(entries.position()["recent"]) == 512


@pytest.mark.parametrize("text", [b"", b"x", b"[]", b"null", b"{}", b'{"__CURSOR": 7}', b"\xff", b"[" * 100_000])
def test_what_is_no_entry_is_counted(text: bytes) -> None:
    entries = start()
    assert (entries.take(text), entries.lost()) == (b"", [("not an entry of the journal", len(text))])


@pytest.mark.parametrize("message", [None, "", [], {"a": 1}, 7, [300], [None, "x"], [[27, 91], "x"], True])
def test_no_message_is_too_odd(message: Any) -> None:
    """What can be read as text is handed on, the rest left out."""
    entries = start()
    entries.take(row(1, message))
    assert texts(entries.take(row(2, "next"))) == ["next"]


def test_suppression_is_told_by_journald_only() -> None:
    """A server that logs the same words has lost nothing."""
    entries = start()
    text = "Suppressed 12 messages from vllm.service"
    assert texts(entries.take(row(1, text, SYSLOG_IDENTIFIER="vllm"))) == [text]
    assert entries.lost() == []
    assert entries.take(row(2, text, MESSAGE_ID="a596d6fe7bfa4994828e72309e95d61e")) == b""
    assert entries.take(row(3, text, SYSLOG_IDENTIFIER="systemd-journald")) == b""
    assert entries.lost() == [("suppressed by journald", 24)]


def test_dockers_pieces_are_joined_too() -> None:
    """Its journald driver cuts after 16 KiB; all containers have the daemon's pid."""
    entries = start()
    cut = {"CONTAINER_PARTIAL_MESSAGE": "true"}
    data = b"".join(
        entries.take(line)
        for line in (
            row(1, "a1", CONTAINER_ID="a", **cut),
            row(2, "b1", CONTAINER_ID="b", **cut),
            row(3, "a2", CONTAINER_ID="a"),
            row(4, "b2", CONTAINER_ID="b"),
        )
    )
    assert texts(data) == ["a1a2", "b1b2"]
