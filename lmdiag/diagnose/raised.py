"""Where the root was raised: by the traceback, by the catalogue of raise sites, by the card, or by what its words say."""

from __future__ import annotations

from lmdiag.diagnose.cards import Cards
from lmdiag.lazy_pattern import lazy
from lmdiag.match.history import (
    contradiction,
    functions,
    link,
    newest,
    releases_by_line,
    rewording,
    source_line,
    span,
    spans,
)
from lmdiag.match.packages import Located, frame_is_hidden, may_be_of, raising_frame
from lmdiag.match.raise_sites import CANDIDATE, CERTAIN, SiteMatch, agrees
from lmdiag.match.versions import release_name, version_key
from lmdiag.model import Card, ExceptionInfo, Facts, RaisedAt, RaiseSite

_RELEASE = lazy(r"\d+\.\d+\.\d+(?:\.\d+)?(?:\.post\d+)?$")


def raised_at(
    info: ExceptionInfo, card: Card | None, facts: Facts, cards: Cards, *, truncated: bool = False
) -> RaisedAt | None:
    """Return the raise site, or None if nothing tells it.

    The traceback's last frame is right for the code that ran; the catalogue adds what releases have the message. pydantic
    hides the frame of a validator, and a copy may have lost the frames: then the catalogue knows the site, or the card.
    """
    frame = raising_frame(info.frames)
    versions = {"vllm": facts.vllm_version, "lmcache": facts.lmcache_version}
    match = cards.raise_site(info.type, info.message, frame, versions, truncated=truncated)
    if frame:
        return _framed(frame, match, versions.get(frame.package))
    if match is None or match.confidence != CERTAIN:
        from lmdiag.match.foreign import raised_by  # its table is worth a millisecond, and most logs have the frame

        if foreign := raised_by(info.type, info.message):
            return RaisedAt(foreign, None, None, None, None, None, "words")
    if info.frames and not frame_is_hidden(info.frames):
        return None  # raised in code that belongs to no package: a copy of vLLM's words is not vLLM
    if match and not may_be_of(match.site.project, info.frames):
        match = None  # only other packages called what hides the frame: they may say the same
    if card and card.raised_at and (match is None or match.confidence == CANDIDATE):
        return _of_card(card.raised_at, info, versions)
    return _unframed(match, versions) if match and _is_possible(match) else None


def _is_possible(match: SiteMatch) -> bool:
    """Whether a few words are worth telling: not where the version that ran does not have them."""
    return match.confidence != CANDIDATE or match.release is None or match.site.is_in(match.release)


def _framed(frame: Located, match: SiteMatch | None, version: str | None) -> RaisedAt:
    at = RaisedAt(frame.package, version, frame.path, frame.line, frame.function, None)
    at = at._replace(url=link(at.project, _release(version), frame.path, frame.line))
    if match is None or match.site.project != frame.package:
        return at
    if match.confidence != CERTAIN and not agrees(match, frame):
        return at
    return _with_history(at, match, frame)


def _unframed(match: SiteMatch, versions: dict[str, str | None]) -> RaisedAt:
    site, release = match.site, match.release
    version = versions.get(site.project)
    at = RaisedAt(site.project, version, site.file, None, site.function, None, "catalog")
    at = at._replace(elsewhere=len(functions(match)) - 1)
    if release is not None and site.is_in(release):
        place = source_line(site, release)
        at = at._replace(line=place.line, url=place.url)
    return _with_history(at, match, None)


def _with_history(at: RaisedAt, match: SiteMatch, frame: Located | None) -> RaisedAt:
    doubt = contradiction(match, frame, at.version)
    if frame and (at.version is None or doubt) and (releases := releases_by_line(match, frame)):
        url = link(at.project, releases[-1], frame.path, frame.line)
        at = at._replace(by_line=spans(releases, match.site.releases), url=url)
    since, until = span(match.row, at.project)
    now = newest(match.row, match.site)
    return at._replace(
        catalog=match.row.id,
        confidence=match.confidence,
        since=since,
        until=until,
        now=None if (now.file, now.line, now.version) == (at.file, at.line, _release(at.version)) else now,
        reworded=rewording(match.catalog, match.row, at.project) if until else None,
        contradiction=doubt,
    )


def _of_card(sites: tuple[RaiseSite, ...], info: ExceptionInfo, versions: dict[str, str | None]) -> RaisedAt:
    """The card's own list, for a message that the catalogue does not know."""
    text = " ".join(frame.file for frame in info.frames)
    site = next((site for site in sites if f"/{site.project}/" in text), sites[0])
    version = versions.get(site.project)
    line = _line(site, version)
    url = link(site.project, _release(version), site.file, line)
    return RaisedAt(site.project, version, site.file, line, site.function, url, "card")


def _line(site: RaiseSite, version: str | None) -> int | None:
    if version is None or (site.last and version_key(version) > version_key(site.last)):
        return None
    lines = [line for first, line in site.lines if version_key(first) <= version_key(version)]
    return lines[-1] if lines else None


def _release(version: str | None) -> str | None:
    """Return the release that a build is of; a nightly build is of none."""
    public = release_name(version or "")
    return public if _RELEASE.match(public) else None
