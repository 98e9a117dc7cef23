"""Where an error was raised, as the lines of a report: the place, its link, and what the releases did to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.match.versions import release_name
from lmdiag.report.control import clip
from lmdiag.report.layout import Block, Span
from lmdiag.report.sections import counted, field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lmdiag.model import RaisedAt, SourceLine

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
    if site.now and site.now.url and not site.url:  # no line is known for what ran: the newest is the next best
        blocks.append(field("", Span(site.now.url, "url")))
    if site.contradiction:
        blocks.append(field("Contradiction", Span(site.contradiction, "warning")))
    return blocks


def _place(site: RaisedAt, project: str) -> Iterator[Span]:
    yield Span(f"{site.file}" if site.line is None else f"{site.file}:{site.line}", "raw")
    if site.function:
        yield Span(" in ")
        yield Span(site.function, "raw")
    by_line = f"; the line is that of {site.by_line}" if site.by_line and not site.contradiction else ""
    yield Span(f" ({project} {site.version or ''}".rstrip() + f"{by_line})", "dim")
    if site.elsewhere:
        yield Span(f", or in {counted(site.elsewhere, 'other place')}: ")
        yield Span(f"lmdiag catalog show {site.catalog}", "raw")


def _releases(site: RaisedAt) -> Iterator[Span]:
    """`0.11.1 to 0.33.0, now on line 510`, `only 0.33.0, gone since`, or `0.11.1 to 0.29.0; reworded in 0.30.0: …`."""
    now = site.now
    # Without `now`, what ran is the newest release or a build of it.
    last = site.until or (now.version if now else release_name(site.version or ""))
    if last and last != site.since:
        yield Span(f"{site.since} to {last}", "raw")
    else:
        yield Span("only " if site.until else "new in ")
        yield Span(f"{site.since}", "raw")
    if site.reworded:
        yield Span(f"; reworded in {site.reworded.version}: ")
        yield Span(clip(site.reworded.message, _REWORDED_LIMIT), "log")
    elif site.until:
        yield Span(", gone since")
    elif now:
        yield from _now(now, site)


def _now(now: SourceLine, site: RaisedAt) -> Iterator[Span]:
    if now.file == site.file:
        yield Span(f", now on line {now.line}")
    else:
        yield Span(", now at ")
        yield Span(f"{now.file}:{now.line}", "raw")
