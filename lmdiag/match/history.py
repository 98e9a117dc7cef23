"""What the releases did to a raise site: since when it exists, where it is now, what it was reworded to."""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.errors import CatalogError
from lmdiag.match.catalog import Catalog
from lmdiag.match.known_sites import CatalogRow, KnownSite
from lmdiag.match.packages import Located
from lmdiag.match.raise_sites import SiteMatch
from lmdiag.match.versions import version_key
from lmdiag.model import Rewording, SourceLine

_REPOSITORIES = {"vllm": "https://github.com/vllm-project/vllm", "lmcache": "https://github.com/LMCache/LMCache"}
_MAX_SPANS = 4


def link(project: str, release: str | None, file: str, line: int | None) -> str | None:
    """Return the address of a line of a release's source, or None if the project's place is not known."""
    if release is None or line is None or project not in _REPOSITORIES:
        return None
    return f"{_REPOSITORIES[project]}/blob/v{release}/{file}#L{line}"


def span(row: CatalogRow, project: str) -> tuple[str, str | None]:
    """Return the first release of a project that raises the message, and the last one; None: the newest still does."""
    sites = [site for site in row.sites if site.project == project]
    releases, last = sites[0].releases, max(site.last for site in sites)
    return releases[min(site.first for site in sites)], None if last == len(releases) - 1 else releases[last]


def newest(row: CatalogRow, site: KnownSite) -> SourceLine:
    """Return where the newest release that has the message raises it; in the same function, if that is still there."""
    same = [item for item in row.sites if item.project == site.project]
    last = max(item.last for item in same)
    found = max((item for item in same if item.last == last), key=lambda item: _likeness(item, site))
    return source_line(found, last)


def _likeness(item: KnownSite, site: KnownSite) -> tuple[bool, bool, str]:
    return item.function == site.function, item.file == site.file, item.file


def functions(match: SiteMatch) -> set[tuple[str, str]]:
    """Return (file, function) of all places that raise the message where the match is; of other projects the newest."""
    return {(item.file, item.function) for item in match.row.sites if _is_there(item, match)}


def _is_there(item: KnownSite, match: SiteMatch) -> bool:
    if item.project != match.site.project:
        return item.last == len(item.releases) - 1
    known = match.release is not None and match.site.is_in(match.release)
    return item.is_in(match.release if known and match.release is not None else match.site.last)


def source_line(site: KnownSite, release: int) -> SourceLine:
    """Return the place of a site in a release that has it."""
    version, line = site.releases[release], site.lines_in(release)[0]
    return SourceLine(version, site.file, line, site.function, link(site.project, version, site.file, line))


def rewording(catalog: Catalog, row: CatalogRow, project: str) -> Rewording | None:
    """Return what a message that is gone was last reworded to."""
    successor, seen = None, [row.number]
    try:
        while (number := catalog.renamed.get(seen[-1])) is not None and number not in seen:  # projects may differ
            seen.append(number)
            newer = catalog.row(number)
            if any(site.project == project for site in newer.sites):
                successor = newer
    except CatalogError:  # a damaged part: what is known without it is worth telling
        return None
    return Rewording(span(successor, project)[0], successor.id, successor.template) if successor else None


def contradiction(match: SiteMatch, frame: Located | None, version: str | None) -> str | None:
    """Say that the version which the log states cannot have raised this, or None if it can.

    A build between two releases is held to none: its lines are those of neither.
    """
    site, release = match.site, match.release
    if release is None:
        return _not_yet(match, version)
    same = [item for item in match.row.sites if item.project == site.project]
    stated = f"{site.project} {site.releases[release]}"
    if not any(item.is_in(release) for item in same):
        first, last = span(match.row, site.project)
        return f"the log says {stated}, but this message is only in {first} to {last or site.releases[-1]}"
    if site.how != "raise":  # Python versions differ in the line of an assertion; what is built is raised elsewhere
        return None
    here = [item for item in same if frame and (item.file, item.function) == (frame.path, frame.function)]
    if frame is None or not here or any(frame.line in item.lines_in(release) for item in here):
        return None
    others = [number for item in here for number in range(len(item.releases)) if frame.line in item.lines_in(number)]
    whose = f"is that of {_spans(sorted(set(others)), site.releases)}" if others else "is in no release"
    return f"the log says {stated}, but line {frame.line} of {frame.path} {whose}: it is patched, or another installation ran"


def releases_by_line(match: SiteMatch, frame: Located) -> list[str]:
    """Return the releases that raise the message on the line of the frame: what ran, where the log does not say."""
    site, same = match.site, match.row.sites
    here = [
        item for item in same if (item.project, item.file, item.function) == (site.project, frame.path, frame.function)
    ]
    if site.how != "raise":
        return []
    return [
        name for number, name in enumerate(site.releases) if any(frame.line in item.lines_in(number) for item in here)
    ]


def spans(names: Sequence[str], releases: Sequence[str]) -> str:
    """Write releases as `0.11.2 to 0.12.0, 0.14.1`."""
    return _spans([releases.index(name) for name in names], releases)


def _not_yet(match: SiteMatch, version: str | None) -> str | None:
    """A build between releases may have what the next minor release has, and one without a tag says 0.1.dev1."""
    before, first = (
        _minor(version or ""),
        min(item.first for item in match.row.sites if item.project == match.site.project),
    )
    since = match.site.releases[first]
    if before <= (0, 1) or _minor(since) <= (before[0], before[1] + 1):
        return None
    return f"the log says {match.site.project} {version}, but this message is only in {since} and later"


def _minor(version: str) -> tuple[int, ...]:
    return version_key(version)[:2] if len(version_key(version)) > 1 else ()


def _spans(numbers: list[int], releases: Sequence[str]) -> str:
    """Write `0.11.2 to 0.12.0 and 0.14.1`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    named = [releases[run[0]] + (f" to {releases[run[-1]]}" if len(run) > 1 else "") for run in runs]
    return ", ".join(named[:_MAX_SPANS]) + (" and others" if len(named) > _MAX_SPANS else "")
