from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.match.prose import filled, sentences

KNOWN = {"blocks": "12", "tp": "8"}
FILLED = {
    "a value": ("At most {blocks} fit.", "At most 12 fit."),
    "a sentence without its value goes": ("Lower it. {other} would fit. Then start.", "Lower it. Then start."),
    "the last sentence": ("Lower it. {other} would fit.", "Lower it."),
    "the only sentence": ("{other} would fit.", ""),
    "a number is no end": ("Use 0.95 of {other} GiB. Good.", "Good."),
    "a version is no end": ("From 0.10 on {tp} will do.", "From 0.10 on 8 will do."),
    "JSON stays": ('Set \'{"image": 2}\'. Done.', 'Set \'{"image": 2}\'. Done.'),
    "paragraphs stay": ("First {tp}.\n\nSecond.", "First 8.\n\nSecond."),
    "nothing to fill in": ("As it is. ", "As it is. "),
}


@pytest.mark.parametrize(("text", "wanted"), FILLED.values(), ids=FILLED)
def test_prose_is_filled_in_sentence_by_sentence(text: str, wanted: str) -> None:
    assert filled(text, KNOWN) == wanted


@given(st.text("Ab. !?\n", max_size=60))
def test_sentences_are_the_whole_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@given(st.text("Ab. {}xyz", max_size=60))
def test_nothing_that_is_left_open_is_shown(text: str) -> None:
    assert "{xyz}" not in filled(f"{text}. The value is {{xyz}} here.", KNOWN)
