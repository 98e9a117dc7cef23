"""What to follow: paths, directories and patterns, looked at again and again, as the logs there come and go."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from typing import NamedTuple

from lmdiag.read import globs
from lmdiag.read.files import explain, readable_name
from lmdiag.read.generations import container_of, is_packed
from lmdiag.read.lognames import unfit_kind, unfit_name
from lmdiag.read.parts import Ident, ident_of
from lmdiag.read.rotation import oldest_first, split_rotation

_DOCKER = re.compile(r"[0-9a-f]{64}")


class Found(NamedTuple):
    """A log to follow."""

    path: str
    """`-` is standard input."""
    name: str
    """Unique and lasting: the path, or "namespace/pod/container" for the logs that the kubelet keeps of one."""
    required: bool
    """It was named, and is to be followed also while it does not exist."""
    kind: str = "file"
    """"file", "fifo" or "stdin"."""


class Discovery:
    """The logs that patterns stand for. Nothing is opened: a look costs one stat for each file there is."""

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        own: frozenset[Ident] = frozenset(),
        max_files: int = 1000,
        from_start: bool = False,
    ) -> None:
        """`own`: files and directories that the daemon writes to. `from_start`: begin with a container's first restart."""
        self.problems: list[str] = []
        """What could not be looked at, as of the last call of sources()."""
        self.skipped: list[tuple[str, str]] = []
        """(path, reason) of files that were found and are not followed; rotated parts are not mentioned."""
        self._patterns = patterns
        self._own = own
        self._max_files = max_files
        self._from_start = from_start

    def sources(self) -> list[Found]:
        """List what is there now: what was named first, and in the order of the patterns."""
        finder = _Finder(self._own)
        for pattern in self._patterns:
            finder.add(pattern)
        found = _one_per_container(_without_rotated(finder.found), from_start=self._from_start)
        found.sort(key=lambda one: not one.required)
        self.problems, self.skipped = finder.problems, finder.skipped
        if len(found) > self._max_files:
            self.problems.append(
                f"{len(found) - self._max_files} more logs are there than the {self._max_files} that are followed at "
                f"most, such as {found[self._max_files].path}; name fewer directories"
            )
        return _with_unique_names(found[: self._max_files])


class _Finder:
    """One look at all patterns."""

    def __init__(self, own: frozenset[Ident]) -> None:
        self.found: list[Found] = []
        self.problems: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self._own = own
        self._seen: dict[object, str] = {}

    def add(self, pattern: str) -> None:
        """Add what one pattern stands for."""
        if pattern == "-":
            self._add_once(Found("-", "-", required=True, kind="stdin"), "-")
        elif globs.MAGIC.search(pattern) and not os.path.lexists(pattern):
            self._add_pattern(pattern)
        else:
            self._add_named(pattern)

    def _add_named(self, path: str) -> None:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            self._add_once(Found(path, readable_name(path), required=True), os.path.abspath(path))
        except ValueError as error:  # a NUL in the path
            self.problems.append(f"{path!r}: {error}")
        except PermissionError:  # whoever follows it says so, and tries again
            self._add_once(Found(path, readable_name(path), required=True), os.path.abspath(path))
        except OSError as error:
            self.problems.append(str(explain(path, error)))
        else:
            self._add(path, status, required=True)

    def _add_pattern(self, pattern: str) -> None:
        paths = sorted(globs.find(pattern), key=oldest_first)
        if not paths:
            self.problems.append(f"{pattern}: no file fits this pattern yet; check the directory and the pattern")
        judged = not pattern.rpartition("/")[2].strip("*")  # `*` says nothing about what a log is called
        for path in paths:
            self._add_found(path, judged=judged)

    def _add_found(self, path: str, *, judged: bool) -> None:
        try:
            status = os.stat(path)
        except FileNotFoundError:  # a dangling link, or rotated away meanwhile
            return
        except OSError as error:
            self.problems.append(str(explain(path, error)))
            return
        reason = (unfit_kind(status) or unfit_name(path, status) or _unfit_for_docker(path)) if judged else None
        if reason:
            self.skipped.append((path, reason))
        else:
            self._add(path, status, required=False)

    def _add(self, path: str, status: os.stat_result, *, required: bool) -> None:
        if stat.S_ISDIR(status.st_mode):
            self._add_directory(path, status)
        elif stat.S_ISFIFO(status.st_mode):
            self._add_once(Found(path, readable_name(path), required, kind="fifo"), ident_of(status))
        elif reason := self._unfit(path, status):
            self.skipped.append((path, reason))
            if required:
                self.problems.append(f"{path} is not followed: {reason}")
        else:
            self._add_once(Found(path, readable_name(path), required), ident_of(status))

    def _unfit(self, path: str, status: os.stat_result) -> str | None:
        if kind := unfit_kind(status):
            return f"it is a {kind}, not a file"
        if ident_of(status) in self._own:
            return "it is lmdiag's own output"
        return "it is compressed: nothing more is written into it" if is_packed(path) else None

    def _add_directory(self, directory: str, status: os.stat_result) -> None:
        if ident_of(status) in self._seen or ident_of(status) in self._own:  # also where links run in a circle
            return
        self._seen[ident_of(status)] = directory
        try:
            names = os.listdir(directory)
        except OSError as error:
            self.problems.append(str(explain(directory, error)))
            return
        for path in sorted((os.path.join(directory, name) for name in names), key=oldest_first):
            self._add_found(path, judged=True)

    def _add_once(self, found: Found, identity: object) -> None:
        if identity not in self._seen:
            self._seen[identity] = found.path
            self.found.append(found)
        elif found.path != self._seen[identity]:
            self.skipped.append((found.path, f"the same file as {self._seen[identity]}"))


def _unfit_for_docker(path: str) -> str | None:
    """Say why a file in a container's directory of Docker (<id>/<id>-json.log beside config.v2.json) is no log."""
    directory, name = os.path.split(path)
    container = os.path.basename(directory)
    if _DOCKER.fullmatch(container) and split_rotation(name)[0] != f"{container}-json.log" and not os.path.isdir(path):
        return "not a container's log"
    return None


def _without_rotated(found: list[Found]) -> list[Found]:
    """Leave out the rotated parts of what is found itself: its source reads them."""
    paths = {one.path for one in found}
    return [one for one in found if one.kind != "file" or not _log_of(one.path) & paths]


def _log_of(path: str) -> set[str]:
    directory, name = os.path.split(path)
    return {os.path.join(directory, split_rotation(name)[0])} - {path}


def _one_per_container(found: list[Found], *, from_start: bool) -> list[Found]:
    """Of the kubelet's logs of a container (0.log, 1.log, …) leave the one to begin with; the others follow it."""
    lines: dict[str, list[Found]] = {}
    for one in found:
        if container_of(one.path):
            lines.setdefault(os.path.dirname(one.path), []).append(one)
    out = [one for one in found if not container_of(one.path)]
    return out + [_begin_with(logs, from_start=from_start) for logs in lines.values()]


def _begin_with(logs: list[Found], *, from_start: bool) -> Found:
    logs = sorted(logs, key=lambda log: int(os.path.basename(log.path).removesuffix(".log")))
    named = [log for log in logs if log.required]
    # The last but one: what made the container restart stands at its end.
    first = named[0] if named else logs[0] if from_start else logs[-2:][0]
    container = container_of(first.path)
    return first._replace(name=readable_name(container.name) if container else first.name)


def _with_unique_names(found: list[Found]) -> list[Found]:
    """Call what has another's name (two pods of a name, one after the other) by its path."""
    names: set[str] = set()
    out = []
    for one in found:
        out.append(one._replace(name=readable_name(one.path)) if one.name in names else one)
        names.add(out[-1].name)
    return out
