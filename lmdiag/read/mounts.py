"""Where the kernel does not tell of every write: file systems that others write to as well, over a network or below."""

from __future__ import annotations

import os
import re

MOUNTINFO = "/proc/self/mountinfo"

_DEAF = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "panfs", "wekafs"),
        *("ocfs2", "gfs2", "glusterfs", "orangefs", "9p", "virtiofs", "vboxsf", "fuse", "overlay", "aufs"),
    }
)
"""Types of file systems, as the kernel names them; those of FUSE have a suffix, as `fuse.sshfs`."""
_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mounts:
    """The mount table, looked up by directory. It is read once, until `forget`."""

    def __init__(self, mountinfo: str = MOUNTINFO) -> None:
        self._mountinfo = mountinfo
        self._known: dict[str, bool] = {}
        self._table: list[tuple[str, str]] = []

    def deaf(self, directory: str) -> bool:
        """Whether inotify may miss writes in `directory`, which need not exist; False where nothing is known."""
        if directory not in self._known:
            self._table = self._table or parse_mountinfo(self._read())
            self._known[directory] = is_deaf(_type_at(os.path.realpath(directory), self._table))
        return self._known[directory]

    def forget(self) -> None:
        """Ask again: something may have been mounted."""
        self._known.clear()
        self._table = []

    def _read(self) -> str:
        try:
            with open(self._mountinfo, encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except OSError:
            return ""


def is_deaf(kind: str) -> bool:
    """Whether a type of file system is one of those."""
    return kind.partition(".")[0] in _DEAF


def parse_mountinfo(text: str) -> list[tuple[str, str]]:
    """Read (mount point, type of file system) off lines of proc(5), `/proc/pid/mountinfo`, in their order."""
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if separator and len(fields) > 4:
            mounts.append((_ESCAPE.sub(_unescape, fields[4]), after.split(" ", 1)[0]))
    return mounts


def _type_at(path: str, mounts: list[tuple[str, str]]) -> str:
    """The longest mount point above the path, and of equal ones the last: it covers the others."""
    best, kind = -1, ""
    for point, type_there in mounts:
        inside = point == "/" or path == point or path.startswith(point + "/")
        if inside and len(point) >= best:
            best, kind = len(point), type_there
    return kind


def _unescape(match: re.Match[str]) -> str:
    return os.fsdecode(bytes([int(match[1], 8) & 255]))
