from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.clues import Clues
from lmdiag.model import Clue
from lmdiag.parse.notable import HEAD_LENGTH

CLUES = Clues(
    [
        Clue("a", "memory", "Available KV cache memory: {gib} GiB"),
        Clue("b", "memory", "Available KV cache {what}"),
        Clue("c", "inspect", "Error in inspecting model architecture {name}"),
    ]
)
FOUND = {
    "two cards ask for it": (
        "Available KV cache memory: -2.31 GiB",
        [("a", (("gib", "-2.31"),)), ("b", (("what", "memory: -2.31 GiB"),))],
    ),
    "more may follow": ("Available KV cache memory: 3 GiB (of 80 GiB)", [("a", (("gib", "3"),)), ("b", (("what", "memory: 3 GiB (of 80 GiB)"),))]),
    "a last hole ends with its line": ("Error in inspecting model architecture 'X'\nTraceback", [("c", (("name", "'X'"),))]),
    "each line of a record": (
        "Error in inspecting model architecture A\nError in inspecting model architecture B",
        [("c", (("name", "A"),)), ("c", (("name", "B"),))],
    ),
    "a message of two lines": ("Available KV cache\nmemory: 3 GiB", [("a", (("gib", "3"),)), ("b", (("what", "memory: 3 GiB"),))]),
    "it must stand at the beginning": ("The Available KV cache memory: 3 GiB", []),
    "another": ("Available KV", []),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "wanted"), FOUND.values(), ids=FOUND)
def test_a_clue_is_how_a_text_begins(text: str, wanted: list[tuple[str, object]]) -> None:
    assert [(clue.card, fields) for clue, _, fields in CLUES.find(text)] == wanted


@given(st.text())
def test_arbitrary_text_is_looked_at_without_harm(text: str) -> None:
    assert list(CLUES.find(text)) == [] or any(line[:HEAD_LENGTH] in CLUES.heads for line in text.split("\n"))
