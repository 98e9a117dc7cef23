"""The files that a log was: finding its rotated parts, and telling those that were read from those that were not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lmdiag.errors import InputError
from lmdiag.read.parts import Ident, Mark, PackedPart, Part, digest, ident_of, open_part
from lmdiag.read.rotation import rotated_siblings

_MAX_SIBLINGS = 200
_MAX_KNOWN = 2 * _MAX_SIBLINGS
_PACKED = re.compile(r"\.(?:gz|bz2|xz|zst|zstd)$", re.IGNORECASE)


class Known:
    """The contents that were read, or are older than what was read first: never to be delivered again."""

    def __init__(self, saved: list[list[Any]] | None = None) -> None:
        self._leads: dict[Ident, tuple[int, str]] = {(dev, ino): (size, lead) for dev, ino, size, lead in saved or ()}

    def as_json(self) -> list[list[Any]]:
        """Turn it into what the constructor takes."""
        return [[*ident, size, lead] for ident, (size, lead) in self._leads.items()]

    def add(self, ident: Ident, lead: bytes) -> None:
        """Remember a content by its file and its first bytes; one without any cannot be told from others."""
        self._leads.pop(ident, None)
        if lead:
            self._leads[ident] = len(lead), digest(lead)
        for oldest in list(self._leads)[:-_MAX_KNOWN]:
            del self._leads[oldest]

    def has(self, part: Part) -> bool:
        """Whether this is one of them: the same file, unless the inode was reused, or one compressed since."""
        lead = part.lead()
        size, expected = self._leads.get(part.ident, (0, ""))
        if size and digest(lead[:size]) == expected:
            return True
        return isinstance(part, PackedPart) and (len(lead), digest(lead)) in self._leads.values()


class Unreadable(NamedTuple):
    """A rotated part that cannot be read."""

    path: str
    reason: str
    status: os.stat_result


def siblings(path: str) -> list[str]:
    """List the rotated parts of a log, oldest first, also those beside the file that a link at the path leads to.

    Of a part and its compressed copy only the part counts: the copy may be in the making.
    """
    real = os.path.realpath(path)
    found = list(rotated_siblings(real))
    if os.path.basename(real) != os.path.basename(path):
        found += [other for other in rotated_siblings(path) if os.path.realpath(other) not in {real, *found}]
    plain = set(found)
    return [other for other in found if _PACKED.sub("", other) == other or _PACKED.sub("", other) not in plain]


def open_siblings(path: str) -> Iterator[Part | Unreadable]:
    """Open the newest 200 rotated parts of a log, oldest first; empty ones are left out.

    Each that is taken is the taker's to close. Whoever finds one gone should list them again: it has another name now.
    """
    for sibling in siblings(path)[-_MAX_SIBLINGS:]:
        try:
            part = open_part(sibling)
        except InputError:
            yield Unreadable(sibling, "archive that cannot be read", os.stat(sibling))
        except FileNotFoundError:
            raise
        except OSError as error:  # one bad sibling must not hide the log
            yield Unreadable(sibling, (error.strerror or str(error)).lower(), os.stat(sibling))
        else:
            if part.opened.st_size:
                yield part
            else:
                part.close()


class Unread(NamedTuple):
    """Rotated siblings that were never read, oldest first."""

    older: list[Part]
    """Those listed before the part in question, or all if that is none of the siblings."""
    newer: list[Part]

    @property
    def all(self) -> list[Part]:
        """Both."""
        return self.older + self.newer


class Past:
    """What a log was before: which of its rotated parts were read, and which are still to be."""

    def __init__(self, saved: list[list[Any]] | None = None) -> None:
        self._known = Known(saved)
        self._unreadable: set[Ident] = set()
        self._lost: list[tuple[str, int]] = []

    def as_json(self) -> list[list[Any]]:
        """See Known."""
        return self._known.as_json()

    def lost(self) -> list[tuple[str, int]]:
        """Name the parts that could not be opened since the last call, each once."""
        lost, self._lost = self._lost, []
        return lost

    def add(self, part: Part) -> None:
        """Take a part and its copies for read."""
        for ident in (part.ident, *part.aliases):
            self._known.add(ident, part.lead())

    def unread(self, path: str, present: Sequence[Part], held: Sequence[Part], *, renamed: bool) -> Unread:
        """Open the rotated parts that were never read and are not at hand (`present` and `held`).

        `renamed`: the first of `present` stands at the path no more; once compressed it is known by how it begins.
        """
        parts = self.open_all(path)
        first = present[0] if present else None
        pivot = self._pivot(parts, first, renamed=renamed) if first else None
        at_hand = {part.ident for part in (*present, *held)}
        unread = Unread([], [])
        side = unread.newer if renamed and pivot is None else unread.older
        for part in parts:
            if part is pivot and first:
                side = unread.newer
                first.aliases.add(part.ident)
                part.close()
            elif part.ident in at_hand:
                part.close()
            elif self._known.has(part):
                self._known.add(part.ident, part.lead())
                part.close()
            else:
                side.append(part)
        return unread

    def open_all(self, path: str) -> list[Part]:
        """Open all rotated parts that can be, oldest first."""
        for _ in range(3):  # a file that was listed and is gone has another name now
            parts: list[Part] = []
            try:
                for sibling in open_siblings(path):
                    if isinstance(sibling, Unreadable):
                        self._note(sibling)
                    else:
                        parts.append(sibling)
            except FileNotFoundError:
                close_all(*parts)
            except OSError:
                close_all(*parts)
                raise
            else:
                return parts
        return []

    def _pivot(self, parts: list[Part], first: Part, *, renamed: bool) -> Part | None:
        """Find the part that is the same content as one that we hold: the same file, or what was made of it."""
        same = [part for part in parts if part.ident == first.ident]
        if not same and renamed and (ours := first.lead()):
            same = [part for part in parts if part.lead() == ours and not self._known.has(part)]
        return same[0] if same else None

    def _note(self, sibling: Unreadable) -> None:
        ident = ident_of(sibling.status)
        if ident not in self._unreadable:
            self._unreadable.add(ident)
            self._lost.append((f"{os.path.basename(sibling.path)}: {sibling.reason}", sibling.status.st_size))


def find_mark(unread: list[Part], mark: Mark) -> Part | None:
    """Find the content that a mark was made of, and go there in it.

    Those older than ours are known, so the oldest that fits is ours: newer ones only begin alike. A mark at the very
    start says nothing.
    """
    if not mark.offset:
        return None
    candidates = sorted(unread, key=lambda part: part.ident != mark.ident)
    return next((part for part in candidates if part.seek(mark)), None)


def close_all(*parts: Part) -> None:
    """Close parts that nobody took."""
    for part in parts:
        part.close()


_CONTAINER = re.compile(
    r"(?P<directory>.*/)?(?P<namespace>[^/_]+)_(?P<pod>[^/_]+)_[^/_]+/(?P<container>[^/]+)/(?P<restart>\d+)\.log"
)


class Container(NamedTuple):
    """Where the kubelet keeps a container's log: /var/log/pods/<namespace>_<pod>_<uid>/<container>/<restarts>.log."""

    name: str
    """namespace/pod/container."""
    restart: int


def container_of(path: str) -> Container | None:
    """Read a path as the kubelet makes it (kubelet's BuildContainerLogsDirectory), or return None."""
    found = _CONTAINER.fullmatch(path)
    if not found:
        return None
    return Container(f"{found['namespace']}/{found['pod']}/{found['container']}", int(found["restart"]))


def restarts(directory: str) -> list[int]:
    """List the numbers of the container logs (`3.log`) in a directory, in order; none if it cannot be listed."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return sorted(int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isdecimal())


def is_packed(path: str) -> bool:
    """Whether a name is that of a compressed file."""
    return _PACKED.search(path) is not None
