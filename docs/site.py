"""Writes the cards as the source of a static site, a page a card: `python -m docs.site DIR`; sphinx-build makes the pages.

`make docs` does both. The site needs nothing from another host: its fonts are the reader's, its search is a file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lmdiag import __version__
from lmdiag.match.card_sites import rows_of_rule
from lmdiag.match.history import link, span
from lmdiag.match.library import Library, open_library
from lmdiag.match.raise_sites import RaiseSites
from lmdiag.model import Card, MatchRule, RaiseSite
from lmdiag.report.card import card_object
from lmdiag.report.jsonl import dumps
from lmdiag.report.layout import Block, prose
from lmdiag.report.markdown import escaped, fenced, inline_code, render_blocks
from lmdiag.report.raise_site import PROJECTS
from lmdiag.report.sections import example, paragraphs, references, section, solutions

_CONF = """\
project = "lmdiag fix cards"
author = "the lmdiag authors"
release = "{version}"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "lmdiag fix cards"
html_extra_path = ["json"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["cards.css"]
pygments_style = "sphinx"
pygments_dark_style = "monokai"
"""
_CSS = """\
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
table td { overflow-wrap: anywhere; }
"""
_AREAS = {
    "attention": "Attention backends",
    "chat": "Chat templates",
    "compilation": "Compilation and CUDA graphs",
    "dtype": "Data types",
    "frontend": "Server options",
    "kv-connector": "KV transfer and connectors",
    "length": "Model length and scheduling",
    "lmcache": "LMCache",
    "lora": "LoRA",
    "memory": "GPU memory and KV cache",
    "model": "Models and weights",
    "multimodal": "Images, video, audio",
    "parallel": "Parallelism and Ray",
    "platform": "Platform, ports, environment",
    "pooling": "Embedding and scoring",
    "quantization": "Quantization",
    "request": "Requests",
    "speculative": "Speculative decoding",
    "structured-output": "Structured output",
    "tokenizer": "Tokenizers",
    "tools": "Tool calling and reasoning",
}
"""What the areas are called; one that is not named here goes by its directory."""


def main(arguments: Sequence[str]) -> int:
    """Write the site's source into a directory."""
    write_site(Path(arguments[0]), open_library())
    return 0


def write_site(into: Path, library: Library) -> None:
    """Write conf.py, an index, a page an area, a page and a JSON file a card."""
    for folder in ("cards", "areas", "json/cards", "static"):
        (into / folder).mkdir(parents=True, exist_ok=True)
    cards = [card._replace(raised_at=library.raise_sites_of(card)) for card in map(library.pack.card, library.pack.ids)]
    areas: dict[str, list[Card]] = {}
    for card in cards:
        areas.setdefault(Path(card.path).parent.name, []).append(card)
    _write(into / "conf.py", _CONF.format(version=__version__))
    _write(into / "static" / "cards.css", _CSS)
    _write(into / "index.md", _index(areas))
    for area, members in areas.items():
        _write(into / "areas" / f"{area}.md", _area(area, members))
    for card in cards:
        _write(into / "cards" / f"{card.id}.md", _page(card, library.sites[0] if library.sites else None))
        _write(into / "json" / "cards" / f"{card.id}.json", dumps(card_object(card._replace(path=""))) + "\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _name(area: str) -> str:
    return _AREAS.get(area, area.replace("-", " ").capitalize())


def _index(areas: dict[str, list[Card]]) -> str:
    number = sum(map(len, areas.values()))
    lines = [
        "# Fix cards for vLLM and LMCache",
        "",
        (
            f"{number} errors that end a vLLM server or fail its requests: what each means, and what to change. "
            "Search for the words of the message, or go by area."
        ),
        "",
        *_toctree((f"{_name(area)} <areas/{area}>" for area in sorted(areas, key=_name)), hidden=True),
    ]
    for area in sorted(areas, key=_name):
        lines += ["", f"- [{escaped(_name(area))}](areas/{area}.md) ({len(areas[area])})"]
    return "\n".join(lines) + "\n"


def _area(area: str, cards: Sequence[Card]) -> str:
    rows = [f"- [{escaped(card.title)}](../cards/{card.id}.md): {card.severity}, {card.scope}" for card in cards]
    tree = _toctree((f"../cards/{card.id}" for card in cards), hidden=True)
    return "\n".join([f"# {escaped(_name(area))}", "", *rows, "", *tree]) + "\n"


def _toctree(entries: Iterator[str], *, hidden: bool) -> list[str]:
    return ["```{toctree}", *([":hidden:"] if hidden else []), "", *entries, "```"]


def _page(card: Card, sites: RaiseSites | None) -> str:
    lines = [
        f"# {escaped(card.title)}",
        "",
        (
            f"{inline_code(card.id)}: {card.severity}, {card.scope}. {', '.join(map(inline_code, card.tags))} "
            f'(<a href="{card.id}.json">JSON</a>)'
        ),
        "",
        "## The message",
        "",
        *(line for rule in card.rules for line in _message(rule, sites)),
        render_blocks(_explained(card)).rstrip("\n"),
        "",
        *_sample(card),
        *_places(card),
        *_related(card),
        render_blocks(references(card)).rstrip("\n"),
    ]
    return "\n".join(lines).replace("\n### ", "\n## ") + "\n"


def _message(rule: MatchRule, sites: RaiseSites | None) -> Iterator[str]:
    """Quote a wording, with the releases that raise it."""
    types = " or ".join(rule.types)
    said = rule.message or "(no message)"
    yield from fenced([f"{types}: {said}" if types else said])
    if rule.raised_in:
        yield from ["", f"Raised in {', '.join(map(inline_code, rule.raised_in))}."]
    rows = rows_of_rule(rule, sites) if sites and rule.message else []
    spans = {
        f"{PROJECTS.get(project, project)} {first} {f'to {last}' if last else 'and later'}"
        for row in rows
        for project in dict.fromkeys(site.project for site in row.sites)
        for first, last in [span(row, project)]
    }
    yield from ["", escaped(f"In {', '.join(sorted(spans))}.") if spans else "", ""]


def _explained(card: Card) -> list[Block]:
    cases = [Block("item", prose(f"{case.text} (where `{case.when}`)"), "-") for case in card.cases]
    return [
        *section("Meaning", paragraphs(card.meaning)),
        *section("When it happens", paragraphs(card.trigger)),
        *section("Told apart by the log", cases),
        *section("How people get there", [Block("item", prose(text), "-") for text in card.situations]),
        *section("What to change", solutions(card.solutions)),
        *example(card),
        *section("Check afterwards", paragraphs(card.verify)),
    ]


def _sample(card: Card) -> list[str]:
    if not card.samples:
        return []
    return ["## In a log", "", *fenced(card.samples[0].log.strip("\n").split("\n")), ""]


def _places(card: Card) -> list[str]:
    rows = [f"- {line}" for site in card.raised_at for line in _place(site)]
    return ["## Raised at", "", *rows, ""] if rows else []


def _place(site: RaiseSite) -> Iterator[str]:
    name = f"{inline_code(site.file)} in {inline_code(site.function)}"
    if not site.lines:
        yield name
        return
    version, line = site.lines[-1]
    address = link(site.project, site.last or version, site.file, line)
    until = f"{site.lines[0][0]} to {site.last}" if site.last else f"{site.lines[0][0]} and later"
    where = f"[line {line}]({address})" if address else f"line {line}"
    yield f"{name}, {where} ({escaped(PROJECTS.get(site.project, site.project))} {until})"


def _related(card: Card) -> list[str]:
    links = [f"- [{inline_code(name)}]({name}.md)" for name in card.related]
    return ["## Related", "", *links, ""] if links else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
