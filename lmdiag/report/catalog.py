"""The catalogue for a person and for a program: messages, their sites over the releases, and changes between two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lmdiag.match.history import link, rewording
from lmdiag.report.control import clip, one_line

if TYPE_CHECKING:
    from lmdiag.match.catalog import Catalog
    from lmdiag.match.catalog_diff import Change
    from lmdiag.match.known_sites import CatalogRow, KnownSite
    from lmdiag.match.raise_sites import SiteMatch
    from lmdiag.model import Rewording

_NO_WORDS = "(no words of its own: str(error), a variable, or nothing)"
_NO_TYPE = "(type known at run time)"
_HOW = {"raise": "raised", "assert": "asserted", "built": "built here, raised elsewhere", "again": "raised again"}
_MESSAGE_LIMIT = 1000
_MAX_SITES = 20


# -- for a program ---------------------------------------------------------------------------------------------------


def site_object(site: KnownSite, release: int | None = None) -> dict[str, object]:
    """Return a site as JSON, as it is in one release; in the last one that has it if that one does not."""
    at = _shown(site, release)
    kind, family = site.type_in(at)
    lines = site.lines_in(at)
    return {
        "project": site.project,
        "version": site.releases[at],
        "file": site.file,
        "function": site.function,
        "qualname": site.qualname,
        "lines": list(lines),
        "type": kind or None,
        "family": family or None,
        "how": site.how,
        "validator": site.validator,
        "since": site.releases[site.first],
        "until": None if _is_newest(site) else site.releases[site.last],
        "url": link(site.project, site.releases[at], site.file, lines[0]),
    }


def row_object(catalog: Catalog, row: CatalogRow) -> dict[str, object]:
    """Return a message with all its sites as JSON; each site has its lines and types by version."""
    found = next(iter(_rewordings(catalog, row)), None)
    return {
        "kind": "message",
        "id": row.id,
        "message": row.template,
        "sites": [{**site_object(site), "history": history(site), "types": types(site)} for site in row.sites],
        "reworded": found[1]._asdict() if found else None,
        "aliases": _former(catalog, row),
    }


def history(site: KnownSite) -> dict[str, list[int]]:
    """Return the lines of a site by version, for each version that differs from the one before; none: not there."""
    found: dict[str, list[int]] = {}
    before: tuple[int, ...] = ()
    for release in range(site.first, site.last + 1):
        lines = site.lines_in(release)
        if lines != before:
            found[site.releases[release]] = list(lines)
        before = lines
    return found


def types(site: KnownSite) -> dict[str, str | None]:
    """Return the type of a site by version, for each version in which it changed."""
    return {site.releases[change[0]]: change[1] or None for change in site.changes}


def match_object(match: SiteMatch) -> dict[str, object]:
    """Return what was found for a message as JSON."""
    site, release = match.site, match.release
    new = rewording(match.catalog, match.row, site.project)
    return {
        "kind": "match",
        "id": match.row.id,
        "confidence": match.confidence,
        "message": match.row.template,
        "site": site_object(site, release),
        "in_version": None if release is None else site.is_in(release),
        "sites": len(match.row.sites),
        "reworded": new._asdict() if new else None,
    }


def change_object(change: Change, project: str, old: int, new: int) -> dict[str, object]:
    """Return a change between two releases as JSON."""
    return {
        "kind": "change",
        "change": change.kind,
        "project": project,
        "id": change.row.id,
        "message": change.row.template,
        "was": {"id": change.was.id, "message": change.was.template} if change.was else None,
        "old": [site_object(site, old) for site in change.old],
        "new": [site_object(site, new) for site in change.new],
    }


# -- for a person ----------------------------------------------------------------------------------------------------


def set_lines(lines: Iterable[str], width: int | None) -> str:
    """Make lines safe to show, and break those that are wider than a terminal; what does not fit hangs below.

    A path, a link and any other word stays whole. None: a pipe, where a message stays on one line.
    """
    return "".join(f"{line.rstrip()}\n" for text in map(one_line, lines) for line in _broken(text, width))


def _broken(text: str, width: int | None) -> list[str]:
    from textwrap import wrap

    if width is None or not text:
        return [text]
    words = text.lstrip()
    indent = " " * (len(text) - len(words))  # told apart: a first word that is too wide would drop it
    hang = f"{indent}  "
    return wrap(
        words, width, initial_indent=indent, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
    )


def match_lines(match: SiteMatch) -> Iterator[str]:
    """Say what was found for a message."""
    site, release = match.site, match.release
    yield f"{match.row.id}  {match.confidence}"
    yield f"  {_said(match.row, [site], _shown(site, release))}"
    if release is not None and not site.is_in(release):
        yield f"  not raised in {site.project} {site.releases[release]}; this is the last release that does:"
    yield from (f"  {line}" for line in _site_lines(site, release))
    if new := rewording(match.catalog, match.row, site.project):
        yield f"  {_reworded(new)}"
    others = len(match.row.sites) - 1
    if others:
        noun = "one more site" if others == 1 else f"{others} more sites"
        yield f"  {noun}: lmdiag catalog show {match.row.id}"


def row_lines(catalog: Catalog, row: CatalogRow) -> Iterator[str]:
    """Show a message whole."""
    yield f"{row.id}  {_message(row)}"
    if former := _former(catalog, row):
        yield f"  reworded from {', '.join(former)}"
    yield from (f"  {_reworded(new)} ({project})" for project, new in _rewordings(catalog, row))
    for site in row.sites[:_MAX_SITES]:
        yield f"  {_type(site, site.last) or _NO_TYPE}"
        yield from (f"    {line}" for line in _site_lines(site, None))
        yield from (f"    {line}" for line in _history_lines(site))
    if len(row.sites) > _MAX_SITES:
        yield f"  {len(row.sites) - _MAX_SITES} more sites: lmdiag catalog show {row.id} --format jsonl"


def _history_lines(site: KnownSite) -> Iterator[str]:
    lines = history(site)
    if len(lines) > 1:
        found = [f"{' and '.join(map(str, at)) or 'none'} from {version}" for version, at in lines.items()]
        yield f"line {', '.join(found)}"
    if len(site.changes) > 1:
        found = [f"{_type(site, change[0]) or _NO_TYPE} from {site.releases[change[0]]}" for change in site.changes]
        yield f"type {', '.join(found)}"


def _site_lines(site: KnownSite, release: int | None) -> Iterator[str]:
    at = _shown(site, release)
    hidden = ", in a validator: pydantic hides this frame" if site.validator else ""
    yield f"{_HOW[site.how]} in {site.project} {site.releases[at]}{hidden}"
    yield f"  {_place(site, at)}"
    if url := link(site.project, site.releases[at], site.file, site.lines_in(at)[0]):
        yield f"  {url}"
    yield f"  {_releases(site)}"


def _releases(site: KnownSite) -> str:
    """Write `in 0.11.1 to 0.34.0, the newest known`, `only in 0.33.0` or `new in 0.34.0, the newest known`."""
    first, last = site.releases[site.first], site.releases[site.last]
    if site.first == site.last:
        return f"new in {last}, the newest known" if _is_newest(site) else f"only in {last}"
    gaps = any(not site.is_in(release) for release in range(site.first, site.last))
    end = ", the newest known" if _is_newest(site) else ", gone since"
    return f"in {first} to {last}{', with gaps' if gaps else ''}{end}"


def change_lines(change: Change, old: int, new: int) -> Iterator[str]:
    """Say a change in a few lines: the message first, then what it was, then the places."""
    at, release = (change.new, new) if change.new else (change.old, old)
    yield f"{change.row.id}  {_said(change.row, at, release)}"
    if change.was:
        yield f"  was {change.was.id}: {_message(change.was)}"
    if change.kind == "retyped":
        yield f"  was {_families(change.old, old)}; is {_families(change.new, new)}"
    if change.kind == "moved":
        yield from _move_lines(change, old, new)
    else:
        yield f"  {_places(at, release)}"


def _move_lines(change: Change, old: int, new: int) -> Iterator[str]:
    before = [(site.file, site.qualname) for site in change.old]
    after = [(site.file, site.qualname) for site in change.new]
    left = [site for site in change.old if (site.file, site.qualname) not in after]
    come = [site for site in change.new if (site.file, site.qualname) not in before]
    yield f"  was at {_places(left, old)}"
    yield f"  is at {_places(come, new)}"


def _said(row: CatalogRow, sites: Sequence[KnownSite], release: int) -> str:
    kinds = dict.fromkeys(site.type_in(release)[0] for site in sites)
    return f"{' or '.join(filter(None, kinds)) or _NO_TYPE}: {_message(row)}"


def _families(sites: Sequence[KnownSite], release: int) -> str:
    return " or ".join(dict.fromkeys(_type(site, release) or _NO_TYPE for site in sites))


def _type(site: KnownSite, release: int) -> str:
    """Write `VLLMValidationError (a VLLMError)`: what its name does not tell is whether a client sees status 400."""
    kind, family = site.type_in(release)
    return f"{kind} (a kind of {family})" if kind and family and family != kind else kind


def _places(sites: Sequence[KnownSite], release: int) -> str:
    return _place(sites[0], release) + (f" and {len(sites) - 1} more" if len(sites) > 1 else "")


def _place(site: KnownSite, release: int) -> str:
    return f"{site.file}:{site.lines_in(release)[0]} in {site.function}"


def _message(row: CatalogRow) -> str:
    return clip(one_line(row.template), _MESSAGE_LIMIT) or _NO_WORDS


def _reworded(new: Rewording) -> str:
    return f"reworded in {new.version}: {new.id}  {clip(one_line(new.message), _MESSAGE_LIMIT)}"


# -- both ------------------------------------------------------------------------------------------------------------


def _shown(site: KnownSite, release: int | None) -> int:
    return site.last if release is None or not site.is_in(release) else release


def _is_newest(site: KnownSite) -> bool:
    return site.last == len(site.releases) - 1


def _rewordings(catalog: Catalog, row: CatalogRow) -> Iterator[tuple[str, Rewording]]:
    for project in dict.fromkeys(site.project for site in row.sites):
        if new := rewording(catalog, row, project):
            yield project, new


def _former(catalog: Catalog, row: CatalogRow) -> list[str]:
    return [catalog.row(old).id for old, new in catalog.renamed.items() if new == row.number]
