from __future__ import annotations

import io
import json
from typing import Any

from report_samples import ADAPTER, CARD

from lmdiag.model import Card
from lmdiag.report.card import card_object, print_card, render_card_markdown
from lmdiag.report.jsonl import dumps


def show(card: Card) -> str:
    file = io.StringIO()
    print_card(card, file=file, color=False, width=100)
    return file.getvalue()


def test_a_person_sees_the_whole_card() -> None:
    text = show(CARD)
    assert text.startswith(f"CRITICAL  {CARD.title}\n")
    words = " ".join(text.split())
    for piece in (
        CARD.id, "ValueError: layerwise MLA connector is not supported yet", CARD.meaning, CARD.situations[0],
        "lmcache.use_layerwise: false", "Not where the cache is shared", "use_layerwise: true", CARD.verify,
        ADAPTER, "line 508 at last (vLLM 0.11.0 and later)", *CARD.related, *CARD.references, *CARD.aliases, CARD.path,
    ):  # fmt: skip
        assert piece in words


def test_a_site_that_is_gone_says_until_when() -> None:
    site = CARD.raised_at[0]._replace(last="0.26.2")
    assert "(vLLM 0.11.0 to 0.26.2)" in " ".join(show(CARD._replace(raised_at=(site,))).split())


def test_a_site_of_no_known_line_has_its_place_only() -> None:
    site = CARD.raised_at[0]._replace(project="transformers", file="transformers/a.py", lines=())
    assert "- transformers/a.py in _init_lmcache_engine\n" in show(CARD._replace(raised_at=(site,)))


def test_a_small_card_has_no_empty_sections() -> None:
    bare = CARD._replace(
        situations=(), example_before="", example_after="", verify="", related=(), references=(), raised_at=()
    )
    text = show(bare)
    for title in ("How people get there", "Example", "Check afterwards", "Related", "References", "Raised at"):
        assert title not in text


def test_markdown_has_the_same_sections() -> None:
    text = render_card_markdown(CARD)
    assert text.startswith(f"## CRITICAL  {CARD.title}\n")
    assert "### What to change\n\n1. Set `use_layerwise` to `false`.\n" in text


def test_a_program_gets_every_field() -> None:
    got: dict[str, Any] = json.loads(dumps(card_object(CARD)))
    assert list(got) == list(Card._fields)
    assert got["rules"][0]["types"] == ["ValueError"]
    assert got["solutions"][0]["change"] == {"lmcache.use_layerwise": "false"}
    assert got["raised_at"][0]["lines"] == {"0.11.0": 480, "0.26.0": 508}
    assert got["samples"][0]["fields"] == {"a": "b"}
    assert got["near_misses"][0]["log"] == CARD.near_misses[0].log
