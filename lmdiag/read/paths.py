"""Arguments to inputs: files, `-`, patterns and directories; each file once, the older part of a log first."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from lmdiag.errors import InputError
from lmdiag.read import globs
from lmdiag.read.files import explain
from lmdiag.read.lognames import unfit_content, unfit_kind, unfit_name
from lmdiag.read.rotation import oldest_first, rotated_siblings

__all__ = ["Expansion", "Input", "expand", "rotated_siblings"]


class Input(NamedTuple):
    """Something to read."""

    path: str
    """`-` is standard input."""
    source: str
    """The name to show: what the person typed, joined with the names below a directory."""


class Expansion(NamedTuple):
    """What the arguments come to."""

    inputs: tuple[Input, ...]
    skipped: tuple[tuple[str, str], ...]
    """(path, reason) of files that were found and are not read."""
    errors: tuple[InputError, ...]
    """Arguments that name nothing readable."""


def expand(arguments: Sequence[str]) -> Expansion:
    """Find the inputs that the arguments name, in their order.

    A file that is named is read whatever it holds. Of what a pattern finds, empty and binary files, pipes, sockets and
    devices are skipped; in a directory also what is no log by its name. Parts of one log that stand side by side
    (server.log server.log.1, as the shell expands server.log*) are put in the order of their age.
    """
    finder = _Finder()
    for _, group in groupby(arguments, key=lambda argument: oldest_first(argument)[:2]):
        for argument in sorted(group, key=_age):
            finder.add(argument)
    return Expansion(tuple(finder.inputs), tuple(finder.skipped), tuple(finder.errors))


def _age(argument: str) -> tuple[int, str, int]:
    return oldest_first(argument)[2]


class _Finder:
    """Collects an expansion."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.skipped: list[tuple[str, str]] = []
        self.errors: list[InputError] = []
        self._seen: dict[object, str] = {}

    def add(self, argument: str) -> None:
        """Add what one argument names."""
        if argument == "-":
            self._add_once("-", "-")
        elif globs.MAGIC.search(argument) and not os.path.lexists(argument):
            self._add_pattern(argument)
        else:
            self._add_named(argument)

    def _add_named(self, path: str) -> None:
        try:
            status = os.stat(path)
            if not stat.S_ISDIR(status.st_mode):
                self._add_once(path, _identity(status))
                return
            os.scandir(path).close()
        except ValueError as error:  # a NUL in the path
            self.errors.append(InputError(f"{path!r}: {error}"))
        except OSError as error:
            self.errors.append(explain(path, error))
        else:
            self._add_tree(path)

    def _add_pattern(self, pattern: str) -> None:
        found = sorted(globs.find(pattern), key=oldest_first)
        if not found:
            self.errors.append(InputError(f"{pattern}: no file fits this pattern; check the directory and the pattern"))
        for path in found:
            self._add_tree(path)

    def _add_tree(self, top: str) -> None:
        """Add a file, or all logs below a directory; `top` itself is not judged by its name."""
        pending = [top]
        while pending:
            path = pending.pop()
            try:
                status = os.stat(path)
                if reason := unfit_kind(status) or (path != top and unfit_name(path, status)):
                    self.skipped.append((path, reason))
                elif stat.S_ISDIR(status.st_mode):
                    pending += self._entries(path, status)
                else:
                    self._add_fit(path, status)
            except FileNotFoundError as error:  # a dangling link, or a log that was rotated away meanwhile
                self.skipped.append((path, error.strerror or str(error)))
            except OSError as error:  # it may hold the failure: not reading it must not look like finding nothing
                self.errors.append(explain(path, error))

    def _entries(self, directory: str, status: os.stat_result) -> list[str]:
        """List a directory that was not read yet, last first, as a stack wants it."""
        if earlier := self._seen.get(_identity(status)):
            self.skipped.append((directory, f"the same directory as {earlier}"))
            return []
        self._seen[_identity(status)] = directory
        paths = [os.path.join(directory, name) for name in os.listdir(directory)]
        return sorted(paths, key=oldest_first, reverse=True)

    def _add_fit(self, path: str, status: os.stat_result) -> None:
        if reason := unfit_content(path):
            self.skipped.append((path, reason))
        else:
            self._add_once(path, _identity(status))

    def _add_once(self, path: str, identity: object) -> None:
        if earlier := self._seen.get(identity):
            self.skipped.append((path, f"the same file as {earlier}"))
            return
        self._seen[identity] = path
        self.inputs.append(Input(path, path))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
