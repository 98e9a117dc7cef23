from __future__ import annotations

from typing import Any

import pytest
from report_samples import ADAPTER, URL

from lmdiag.model import RaisedAt, Rewording, SourceLine
from lmdiag.report.markdown import render_blocks
from lmdiag.report.plain import render_plain
from lmdiag.report.raise_site import raise_site

SITE = RaisedAt("vllm", "0.26.0", "vllm/config/model.py", 508, "check", URL, catalog="3f5940884c", confidence="certain", since="0.11.1")
NOW = SourceLine("0.34.0", "vllm/config/model.py", 510, "check", "https://example.org/now")


def text(width: int = 80, **changes: Any) -> str:
    return render_plain(raise_site(SITE._replace(**changes)), width)


def words(**changes: Any) -> str:
    return " ".join(text(**changes).split())


def test_the_place_its_link_and_its_releases() -> None:
    assert text(now=NOW).splitlines() == [
        "  Raised at    vllm/config/model.py:508 in check (vLLM 0.26.0)",
        f"               {URL}",
        "  In releases  0.11.1 to 0.34.0, now on line 510",
    ]


RELEASES: dict[str, tuple[dict[str, Any], str]] = {
    "the newest, on this line": ({}, "0.11.1 to 0.26.0"),
    "a build of the newest": ({"version": "0.26.0+cu129"}, "0.11.1 to 0.26.0"),
    "the newest, elsewhere": ({"now": NOW._replace(file="vllm/b.py")}, "0.11.1 to 0.34.0, now at vllm/b.py:510"),
    "new": ({"since": "0.26.0"}, "new in 0.26.0"),
    "new since what ran": ({"since": "0.34.0", "now": NOW}, "new in 0.34.0, now on line 510"),
    "gone": ({"until": "0.29.0", "now": NOW}, "0.11.1 to 0.29.0, gone since"),
    "in one only": ({"since": "0.33.0", "until": "0.33.0"}, "only 0.33.0, gone since"),
    "reworded": ({"until": "0.29.0", "reworded": Rewording("0.30.0", "ab", "no {x} yet")}, "0.11.1 to 0.29.0; reworded in 0.30.0: no {x} yet"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), RELEASES.values(), ids=RELEASES)
def test_the_releases(changes: dict[str, Any], said: str) -> None:
    assert text(**changes).splitlines()[2] == f"  In releases  {said}"


LABELS = [("certain", "Raised at"), ("probable", "Probably raised at"), ("candidate", "Perhaps raised at")]


@pytest.mark.parametrize(("confidence", "label"), LABELS)
def test_what_the_catalogue_says_has_its_doubt(confidence: str, label: str) -> None:
    assert text(told_by="catalog", confidence=confidence).startswith(f"  {label}  ")
    assert text(told_by="traceback", confidence=confidence).startswith("  Raised at  ")


def test_what_is_not_known_leaves_no_gap() -> None:
    bare: dict[str, Any] = {"version": None, "line": None, "url": None, "since": None, "confidence": None}
    assert text(**bare) == "  Raised at  vllm/config/model.py in check (vLLM)\n"
    assert text(**bare, function=None) == "  Raised at  vllm/config/model.py (vLLM)\n"


def test_without_a_version_the_newest_release_is_linked() -> None:
    assert text(version=None, line=None, url=None, now=NOW).splitlines()[1:] == [
        "  In releases  0.11.1 to 0.34.0, now on line 510",
        "               https://example.org/now",
    ]


def test_the_line_tells_the_releases() -> None:
    assert "in check (vLLM; the line is that of 0.14.0 to 0.22.1)" in words(version=None, by_line="0.14.0 to 0.22.1")


def test_a_contradiction_is_told() -> None:
    why = "the log says vllm 0.26.0, but this message is only in 0.30.0 to 0.34.0"
    assert f"Contradiction {why}" in words(contradiction=why)


@pytest.mark.parametrize(("project", "name"), [("transformers", "transformers"), ("python", "Python"), ("json", "json")])
def test_a_foreign_error_has_only_its_package(project: str, name: str) -> None:
    site = RaisedAt(project, None, None, None, None, None, "words")
    assert render_plain(raise_site(site), 80) == f"  Raised by  {name}\n"
    assert render_blocks(raise_site(site)) == f"- **Raised by**: {name}\n"


def test_nothing_but_a_path_or_a_link_is_wider_than_the_terminal() -> None:
    long = Rewording("0.30.0", "ab", "word {hole} " * 40)
    full = text(file=ADAPTER, now=NOW._replace(file=ADAPTER + "x"), until="0.29.0", reworded=long, contradiction="but " * 60)
    assert [line for line in full.splitlines() if len(line) > 80 and "vllm" not in line] == []
    assert "…" in full


def test_markdown_shows_versions_and_a_strangers_words_as_they_are() -> None:
    site = SITE._replace(until="0.29.0", reworded=Rewording("0.30.0", "ab", "no `x` *yet* <b> @all"))
    assert render_blocks(raise_site(site)).splitlines() == [
        "- **Raised at**: `vllm/config/model.py:508` in `check` (vLLM 0.26.0)",
        f"  <{URL}>",
        "- **In releases**: `0.11.1 to 0.29.0`; reworded in 0.30.0: ``no `x` *yet* <b> @all``",
    ]


def test_a_message_of_several_functions_is_not_pinned_on_one() -> None:
    assert words(told_by="catalog", elsewhere=2).startswith(
        "Raised at vllm/config/model.py:508 in check (vLLM 0.26.0), or in 2 other places: lmdiag catalog show 3f5940884c"
    )
