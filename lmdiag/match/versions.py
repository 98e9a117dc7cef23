"""The order of releases."""

from __future__ import annotations

from functools import cache

from lmdiag.lazy_pattern import lazy

_RELEASE = lazy(r"v?(\d+(?:\.\d+)*)(?:\.post(\d+))?")


def version_key(version: str) -> tuple[int, ...]:
    """Return the release numbers of a version: `0.15.2rc1.dev93` is (0, 15, 2), and `0.4.0.post1` is (0, 4, 0, 1)."""
    hit = _RELEASE.match(version)
    if hit is None:
        return ()
    return (*map(int, hit.group(1).split(".")), *([int(hit.group(2))] if hit.group(2) else []))


@cache
def release_order(version: str) -> tuple[tuple[int, ...], bool, str]:
    """Return what versions are sorted by: their numbers, a build before its release, and no two are alike."""
    return version_key(version), _RELEASE.fullmatch(version) is not None, version


def release_name(version: str) -> str:
    """Return the release that a build is of: `0.27.1+cu129`, `v0.27.1` and `0.27.1-g3e11e108` are 0.27.1."""
    return version.removeprefix("v").partition("+")[0].partition("-g")[0]
