"""Which directories to listen in for which files, kept true while they come, go and move."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from lmdiag.read.inotify import Inotify
from lmdiag.read.mounts import Mounts

if TYPE_CHECKING:
    from collections.abc import Collection

    from lmdiag.read.inotify import Event

LIMIT = 8192
"""Directories that are watched at most; each costs the kernel about a kilobyte."""


class Directories:
    """Watches the directories of files, and roots under which new files may appear.

    Directories are watched and not files: there are fewer, and a log that is rotated stays heard.
    """

    def __init__(self, problems: list[str], mounts: Mounts | None = None) -> None:
        """`problems` gets a sentence where something can only be polled. Raises ImportError, OSError as Inotify does."""
        self._problems = problems
        self._told: set[str] = set()
        self._mounts = mounts or Mounts()
        self._inotify = Inotify()
        self.fd = self._inotify.fd
        self._files: dict[str, dict[str, set[str]]] = {}  # directory, entry -> the paths that it stands for
        self._parents: dict[str, tuple[str, ...]] = {}  # path -> its directory, and that of the file it links to
        self._roots: dict[str, bool] = {}  # root -> recursive
        self._below: dict[str, set[str]] = {}  # directory under a root, or the root itself -> roots
        self._unwalked: set[str] = set()  # roots whose directories are not all known
        self._watches: dict[str, tuple[int, tuple[int, int]]] = {}  # directory -> watch, (device, inode)
        self._names: dict[int, set[str]] = {}  # watch -> the directories' names, several for one that is linked to
        self._dirty: set[str] = set()

    @property
    def pending(self) -> bool:
        """Whether `take` would return something."""
        return bool(self._dirty)

    def take(self) -> frozenset[str]:
        """Return the paths and roots in which something happened since the last call."""
        taken = frozenset(self._dirty)
        self._dirty.clear()
        return taken

    def deaf(self, path: str) -> bool:
        """Whether writes to the file may go unheard: it lies elsewhere, or in a directory that is not watched now."""
        parents = self._parents.get(path) or (_parent(path),)
        return any(parent not in self._watches or self._mounts.deaf(parent) for parent in parents)

    def watch(self, paths: Collection[str], roots: Collection[tuple[str, bool]]) -> None:
        """Listen for these files and roots, and no longer for others; find directories that were made anew."""
        self._set_files(paths)
        self._set_roots(dict(roots))
        wanted = self._files.keys() | self._below.keys()
        for directory in self._watches.keys() - wanted:
            self._unwatch(directory)
        for directory in self._files.keys() | self._roots.keys():
            self._refresh(directory)
        for root in tuple(self._unwalked):
            self._walk(root, {root})
        self._unwalked.clear()

    def listen(self) -> None:
        """Take the events that lie there."""
        events = self._inotify.read()
        if events is None:
            self._dirty.update(self._parents, self._roots)
            self._unwalked.update(root for root, recursive in self._roots.items() if recursive)
            return
        for event in events:
            for directory in tuple(self._names.get(event.watch, ())):
                self._note(event, directory)
            if event.gone:
                self._lose(event.watch)

    def close(self) -> None:
        """Give all watches back."""
        self._inotify.close()

    def _set_files(self, paths: Collection[str]) -> None:
        self._files = {}
        self._parents = {}
        for path in paths:
            real = os.path.realpath(path) if os.path.islink(path) else path
            self._parents[path] = tuple(dict.fromkeys((_parent(path), _parent(real))))
            for name in {path, real}:
                self._files.setdefault(_parent(name), {}).setdefault(os.path.basename(name), set()).add(path)
        self._dirty &= self._parents.keys() | self._roots.keys()

    def _set_roots(self, roots: dict[str, bool]) -> None:
        if roots == self._roots:
            return
        self._roots = roots
        self._dirty &= self._parents.keys() | roots.keys()
        self._below = {root: {root} for root in roots}
        self._unwalked = {root for root, recursive in roots.items() if recursive}

    def _walk(self, top: str, roots: set[str]) -> None:
        """Watch `top` and all directories below it, links not followed.

        Each is listed only after it is watched, so that nothing is made in between unheard.
        """
        stack = [top]
        while stack:
            directory = stack.pop()
            if len(self._watches) >= LIMIT:
                self._tell(f"more than {LIMIT:,} directories: files in the others are polled")
                return
            self._below.setdefault(directory, set()).update(roots)
            self._refresh(directory)
            stack += _directories(directory)

    def _refresh(self, directory: str) -> None:
        """Watch a directory, anew if another one stands in its place."""
        try:
            found = os.stat(directory)
        except OSError:
            self._unwatch(directory)
            return
        identity = (found.st_dev, found.st_ino)
        watch = self._watches.get(directory)
        if watch is None or watch[1] != identity:
            self._unwatch(directory)
            self._add(directory, identity)

    def _add(self, directory: str, identity: tuple[int, int]) -> None:
        self._mounts.forget()
        try:
            number = self._inotify.add(directory)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.ENOMEM):
                self._tell(f"some files are polled: {error.strerror}")
            return
        self._watches[directory] = (number, identity)
        self._names.setdefault(number, set()).add(directory)
        self._touch(directory)  # what was written before went unheard
        if self._roots.get(directory):
            self._unwalked.add(directory)

    def _unwatch(self, directory: str) -> None:
        watch = self._watches.pop(directory, None)
        if watch is None:
            return
        self._touch(directory)
        names = self._names[watch[0]]
        names.discard(directory)
        if not names:
            del self._names[watch[0]]
            self._inotify.remove(watch[0])

    def _note(self, event: Event, directory: str) -> None:
        """Find out which paths and roots an event is about."""
        self._dirty |= self._files.get(directory, {}).get(event.name, set())
        if not event.structural or not event.name:
            return
        roots = self._below.get(directory, set())
        self._dirty |= roots
        deep = {root for root in roots if self._roots.get(root)}
        if event.directory and deep and os.path.isdir(os.path.join(directory, event.name)):
            self._walk(os.path.join(directory, event.name), deep)

    def _lose(self, watch: int) -> None:
        """Forget a directory that was deleted or moved, unless another stands in its place, or it has another name."""
        names = tuple(self._names.get(watch, ()))
        for directory in names:
            self._unwatch(directory)
        for directory in names:
            if directory in self._files or directory in self._roots or os.path.isdir(directory):
                self._refresh(directory)
            else:
                self._below.pop(directory, None)

    def _touch(self, directory: str) -> None:
        for paths in self._files.get(directory, {}).values():
            self._dirty |= paths
        self._dirty |= self._below.get(directory, set())

    def _tell(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self._problems.append(problem)


def _parent(path: str) -> str:
    return os.path.dirname(path) or "."


def _directories(directory: str) -> list[str]:
    """The directories in a directory, without links to some; none if it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
