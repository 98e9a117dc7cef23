"""A message of the catalogue and the places that raise it, as they lie in a block of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lmdiag.match.catalog_format import HOLE, HOWS, LINE_BREAK, OPAQUE


class KnownSite(NamedTuple):
    """A place that raises a message, over the releases of a project."""

    project: str
    file: str
    """Path from the root of the repository."""
    qualname: str
    how: str
    validator: bool
    """pydantic hides its frame and type."""
    changes: list[list[Any]]
    runs: list[list[int]]
    releases: Sequence[str]
    """All releases of the project, oldest first: what `changes` and `runs` count."""

    @property
    def function(self) -> str:
        """The name that a traceback shows."""
        return self.qualname.rpartition(".")[2]

    @property
    def first(self) -> int:
        """The first release that has it, as a number into `releases`."""
        return min(run[0] for run in self.runs)

    @property
    def last(self) -> int:
        """The last release that has it."""
        return max(run[0] + len(run) - 2 for run in self.runs)

    def lines_in(self, release: int) -> tuple[int, ...]:
        """Return its lines in a release, ascending; none where it is not there."""
        found = [sum(run[1 : release - run[0] + 2]) for run in self.runs if _covers(run, release)]
        return (found[0],) if len(found) == 1 else tuple(sorted(found))

    def is_in(self, release: int) -> bool:
        """Whether a release has it."""
        return any(_covers(run, release) for run in self.runs)

    def type_in(self, release: int) -> tuple[str, str]:
        """Return the exception's type and family in a release: `VLLMValidationError` is no ValueError in all of them."""
        _, kind, *family = max((item for item in self.changes if item[0] <= release), key=lambda item: item[0])
        return kind, family[0] if family else kind


def _covers(run: list[int], release: int) -> bool:
    return run[0] <= release <= run[0] + len(run) - 2


class CatalogRow(NamedTuple):
    """One message, and where it is raised."""

    number: int
    key: str
    names: tuple[str, ...]
    """Of its holes; `_` where they have none."""
    sites: tuple[KnownSite, ...]
    """The one that is there longest stands first."""

    @property
    def id(self) -> str:
        """A name for the message that stays the same over releases."""
        return key_id(self.key)

    @property
    def template(self) -> str:
        """The message as a card's template would say it: `{name}` for holes, doubled braces, white space folded."""
        if self.key.startswith(OPAQUE):
            return ""
        literals = self.key.replace(LINE_BREAK, " ").replace("{", "{{").replace("}", "}}").split(HOLE)
        named = (f"{{{name}}}{literal}" for name, literal in zip(self.names, literals[1:], strict=False))
        return literals[0] + "".join(named)


def key_id(key: str) -> str:
    """Return the id of a row's key: ten hexadecimal digits of its SHA-1, line breaks taken as blanks."""
    from lmdiag.digests import sha1

    return sha1(key.replace(LINE_BREAK, " ").encode(), usedforsecurity=False).hexdigest()[:10]


def site_of(data: list[Any], versions: Mapping[str, Sequence[str]]) -> KnownSite:
    """Return a site from its row's data. Raises ValueError, TypeError or IndexError if they are none."""
    project, file, qualname, how, changes, runs = data
    name = list(versions)[project]
    releases = versions[name]
    for text in (file, qualname, how):
        _require(isinstance(text, str) and bool(text))
    _require(how[0] in HOWS and bool(changes) and bool(runs))
    for at, kind, *family in changes:
        _require(0 <= at < len(releases) and isinstance(kind, str) and all(isinstance(item, str) for item in family))
    for run in runs:
        _require(len(run) > 1 and all(isinstance(item, int) for item in run))
        _require(run[0] >= 0 and run[0] + len(run) - 2 < len(releases))
    return KnownSite(name, file, qualname, HOWS[how[0]], how.endswith("v"), changes, runs, releases)


def _require(fact: bool) -> None:
    if not fact:
        raise ValueError("a row that is none")
