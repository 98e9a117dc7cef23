"""Where the root was raised, in the version that ran, with a link to the line."""

from __future__ import annotations

import re

from lmdiag.diagnose.advice import version_key
from lmdiag.model import Card, ExceptionInfo, Facts, Frame, RaisedAt, RaiseSite

_PACKAGE = re.compile(r"(?:site-packages|dist-packages)[/\\]((\w+)[/\\].*)$")
# The first such directory is the package; a checkout is often called like the package inside it (vllm/vllm/…).
_CHECKOUT = re.compile(r"(?:^|[/\\])((vllm|lmcache)[/\\](?!\2[/\\]).*)$")
_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.post\d+)?$")
_REPOSITORIES = {"vllm": "https://github.com/vllm-project/vllm", "lmcache": "https://github.com/LMCache/LMCache"}


def raised_at(info: ExceptionInfo, card: Card | None, facts: Facts) -> RaisedAt | None:
    """Return the raise site: the traceback's last frame.

    pydantic hides the frame of a validator, and a copy may have lost the frames: then the card knows the site, and its
    line where the log names the version.
    """
    frame = info.frames[-1] if info.frames else None
    located = _locate(frame) if frame else None
    if located and located[0] in _REPOSITORIES and frame:
        project, path = located
        return _site(project, path, frame.line, frame.function, facts)
    if card and card.raised_at:
        site = _preferred(card.raised_at, info)
        version = _version(site.project, facts)
        return _site(site.project, site.file, _line(site, version), site.function, facts)
    if located and frame and located[0] not in ("pydantic", "pydantic_core"):
        return RaisedAt(located[0], None, located[1], frame.line, frame.function, None)
    return None


def _locate(frame: Frame) -> tuple[str, str] | None:
    hit = _PACKAGE.search(frame.file) or _CHECKOUT.search(frame.file)
    return (hit.group(2), hit.group(1).replace("\\", "/")) if hit else None


def _preferred(sites: tuple[RaiseSite, ...], info: ExceptionInfo) -> RaiseSite:
    text = " ".join(frame.file for frame in info.frames)
    return next((site for site in sites if f"/{site.project}/" in text), sites[0])


def _version(project: str, facts: Facts) -> str | None:
    return {"vllm": facts.vllm_version, "lmcache": facts.lmcache_version}.get(project)


def _line(site: RaiseSite, version: str | None) -> int | None:
    if version is None or (site.last and version_key(version) > version_key(site.last)):
        return None
    lines = [line for first, line in site.lines if version_key(first) <= version_key(version)]
    return lines[-1] if lines else None


def _site(project: str, path: str, line: int | None, function: str, facts: Facts) -> RaisedAt:
    version = _version(project, facts)
    url = None
    if version and line and project in _REPOSITORIES and _RELEASE.match(version.partition("+")[0].partition("-g")[0]):
        tag = version.partition("+")[0].partition("-g")[0]
        url = f"{_REPOSITORIES[project]}/blob/v{tag}/{path}#L{line}"
    return RaisedAt(project, version, path, line, function, url)
