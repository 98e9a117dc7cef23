"""Where an error was raised, as the lines of a report: the place, its link, and what the releases did to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.report.control import clip
from lmdiag.report.layout import Block, Span
from lmdiag.report.sections import field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lmdiag.model import RaisedAt

PROJECTS = {"vllm": "vLLM", "lmcache": "LMCache", "python": "Python"}
"""Projects whose name is written otherwise than their package."""
_LABELS = {"certain": "Raised at", "probable": "Probably raised at", "candidate": "Perhaps raised at"}
_REWORDED_LIMIT = 200


def raise_site(site: RaisedAt) -> list[Block]:
    """Say where the error was raised, with a link, and in which releases it is."""
    project = PROJECTS.get(site.project, site.project)
    if site.file is None:
        return [field("Raised by", Span(project))]
    label = _LABELS[site.confidence or "certain"] if site.told_by == "catalog" else "Raised at"
    blocks = [field(label, *_place(site, project))]
    if site.url:
        blocks.append(field("", Span(site.url, "url")))
    if site.since:
        blocks.append(field("In releases", *_releases(site)))
    if site.contradiction:
        blocks.append(field("Contradiction", Span(site.contradiction, "warning")))
    return blocks


def _place(site: RaisedAt, project: str) -> Iterator[Span]:
    yield Span(f"{site.file}" if site.line is None else f"{site.file}:{site.line}", "raw")
    if site.function:
        yield Span(" in ")
        yield Span(site.function, "raw")
    yield Span(f" ({project} {site.version or ''}".rstrip() + ")", "dim")


def _releases(site: RaisedAt) -> Iterator[Span]:
    """`0.11.1 to 0.33.0, there on line 510`, or `0.11.1 to 0.29.0, gone since; reworded in 0.30.0: …`."""
    now = site.now
    last = site.until or (now.version if now else site.version)
    yield Span(f"{site.since} to {last}" if last and last != site.since else f"{site.since}")
    if site.until:
        yield Span(", gone since")
    elif now and now.file == site.file:
        yield Span(f", there on line {now.line}")
    elif now:
        yield Span(", there at ")
        yield Span(f"{now.file}:{now.line}", "raw")
    if site.reworded:
        yield Span(f"; reworded in {site.reworded.version}: ")
        yield Span(clip(site.reworded.message, _REWORDED_LIMIT), "raw")
