"""Following a log file through everything that is done to it: every byte that was written, once, in order.

What the file system says at the moment of a read is all that counts; no notification is relied on. A log is a line of
contents: the one being read, those that came after it and are rotated away already, and at the end the file at the
path. UTF-16 and a UTF-8 byte order mark are not supported: the bytes are delivered as they lie there.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lmdiag.read.files import explain, readable_name
from lmdiag.read.generations import Past, Unread, close_all, container_of, find_mark, restarts
from lmdiag.read.parts import BLOCK, NOTHING_READ, Mark, Part, PlainPart, ident_of

_MAX_TRAILING = 2
_QUIET = 600.0
"""Seconds without a byte after which nobody is expected to write into a renamed file any more."""
_QUIET_DELETED = 10.0
_TORN = 1.0
"""Seconds that a line begun in the current file may wait for its end before others come between."""
_LOOK_AGAIN = 5.0


class FileSource:
    """A log file as a Source (see lmdiag.read.source), across rotation, truncation, deletion and restarts of both sides.

    What cannot be told: a file that was emptied and written again beyond where it was read to, with the same last 64
    bytes before that place; it takes a log of a single short line without a time. Nor, after a restart, an inode that was
    used again for a file that begins with all that was read of the old one.
    """

    ended = False

    def __init__(
        self,
        path: str,
        name: str,
        *,
        required: bool,
        position: dict[str, Any] | None,
        start_offset: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`position` as position() gave it, or None at the first start: then it begins at `start_offset`, in bytes."""
        self.name = name
        self.required = required
        self.problem = ""
        self.generation = 0
        self._path = path
        self._saved = position
        self._start_offset = start_offset
        self._clock = clock
        self._past: Past | None = None
        self._parts: list[Part] = []
        self._trailing: list[PlainPart] = []
        self._lost: list[tuple[str, int]] = []
        self._last_byte = b"\n"
        self._last_time = clock()
        self._directory_seen = (0, 0.0)
        self._container = container_of(path) is not None
        self._forbidden = False
        self._left = False  # the part was read to its end when it stood at the path no more
        if position is not None:
            self._load(position)

    @property
    def path(self) -> str:
        """Where the newest bytes are written: a container's log has another path after each restart."""
        return self._path

    def fileno(self) -> None:
        """Return None: a file is always ready."""

    def read(self) -> bytes:
        """See Source."""
        try:
            data = self._read_line_of_parts() or self._read_trailing()
        except OSError as error:  # EIO, ESTALE: the descriptor is of no more use
            self._give_up(error)
            return b""
        if data:
            self.problem = ""
            self._last_byte, self._last_time = data[-1:], self._clock()
        return data

    def position(self) -> dict[str, Any]:
        """See Source: where in which content, and by what to find it again."""
        if not self._parts and self._saved is not None:
            return self._saved
        mark = self._parts[0].mark if self._parts else NOTHING_READ
        return {
            "path": readable_name(self._path),
            "generation": self.generation,
            **mark.as_json(),
            "left": self._left and len(self._parts) == 1,
            "torn": self._last_byte != b"\n",
            "queued": [{"dev": part.ident[0], "ino": part.ident[1]} for part in self._parts[1:]],
            "trailing": [part.mark.as_json() for part in self._trailing],
            "known": self._past.as_json() if self._past else [],
        }

    def lag(self) -> int:
        """See Source; of compressed parts the compressed bytes."""
        with suppress(OSError):
            return sum(part.left() for part in (*self._parts, *self._trailing))
        return 0

    def lost(self) -> list[tuple[str, int]]:
        """See Source."""
        lost, self._lost = self._lost, []
        return (self._past.lost() if self._past else []) + lost

    def close(self) -> None:
        """See Source; it can be read on afterwards, as after a resume."""
        self._saved = self.position()
        for part in (*self._parts, *self._trailing):
            with suppress(OSError):
                part.close()
        self._parts, self._trailing = [], []

    def past(self) -> tuple[int, int] | None:
        """Return the descriptor of the content that is being read, and how far it was; None if that is no plain file."""
        with suppress(OSError):
            if not self._parts:
                self._open()
        first = self._parts[0] if self._parts else None
        return (first.fd, first.offset) if isinstance(first, PlainPart) else None

    # -- the line of parts ------------------------------------------------------------------------------------------

    def _read_line_of_parts(self) -> bytes:
        if not self._parts:
            self._open()
        looked: Part | None = None
        while self._parts:
            part = self._parts[0]
            if len(self._parts) > 1 and part.spent:
                self._next_part()
                continue
            if part.breaks and not part.offset and self._last_byte != b"\n":
                return b"\n"
            if len(self._parts) == 1:
                if self._was_copied_unread(part):
                    continue
                if part.short and looked is not part:
                    looked = part
                    self._look()
            last = len(self._parts) == 1
            data = part.read()
            part.spent = part.short and not last
            if data is None:
                self._on_other_content(part)
            elif data:
                return data
            elif last and looked is part:
                break
        return b""

    def _next_part(self) -> None:
        part = self._parts.pop(0)
        self._retire(part)
        self._parts[0].breaks = self._parts[0].breaks or part.is_broken
        self.generation += 1

    def _retire(self, part: Part) -> None:
        """Remember a part as read; what was a log is watched for a while by its descriptor, whatever it is called."""
        self._known_past.add(part)
        if isinstance(part, PlainPart):
            part.quiet_since = self._clock()
            self._trailing.append(part)
            for oldest in self._trailing[:-_MAX_TRAILING]:
                self._drop(oldest)
            return
        if part.is_broken:
            self._lost.append(("broken archive", 0))
        part.close()

    def _drop(self, part: PlainPart) -> None:
        self._known_past.add(part)
        self._forget(part)

    def _forget(self, part: PlainPart) -> None:
        self._trailing.remove(part)
        part.close()

    # -- what stands at the path ------------------------------------------------------------------------------------

    def _look(self) -> None:
        """See whether another file stands at the path, and line it up behind the one that is read to its end."""
        try:
            status = os.stat(self._path)
        except OSError as error:
            self.problem = self._why(error)
            elsewhere, size = True, 0
        else:
            self.problem = ""
            elsewhere, size = ident_of(status) != self._parts[-1].ident, status.st_size
        self._left = elsewhere and self._parts[-1].short
        if elsewhere and not self._parts[-1].is_intact():
            return  # emptied before it was renamed, which the next read deals with
        # While nothing was written into the new file, the writer may not have noticed (or never will: nohup).
        if elsewhere and size:
            self._switch()
            return
        if (elsewhere or self._container) and self._has_directory_changed():
            if elsewhere:  # what came between may be rotated away already, too
                self._parts += self._unread_siblings(self._parts[-1], renamed=True).all
            if len(self._parts) == 1:
                self._look_for_restart()

    def _has_directory_changed(self) -> bool:
        """Whether names may have been added since the last call; coarse time stamps are made up for by the clock."""
        changed, now = 0, self._clock()
        with suppress(OSError):
            changed = os.stat(os.path.dirname(self._path) or ".").st_mtime_ns
        if changed == self._directory_seen[0] and now - self._directory_seen[1] < _LOOK_AGAIN:
            return False
        self._directory_seen = changed, now
        return True

    def _switch(self) -> None:
        new: Part | None = self._open_path()
        if new is None:
            return
        came_back = next((part for part in self._trailing if part.ident == new.ident), None)
        if came_back:  # a link that leads to an earlier file again
            new.close()
            self._trailing.remove(came_back)
            new = came_back
            new.short = new.spent = False
        between = self._unread_siblings(self._parts[-1], new, renamed=True).all
        if self._stands(new):
            self._parts += [*between, new]
        else:  # rotated once more meanwhile: the next look gets the order right
            close_all(*between, new)

    def _look_for_restart(self) -> None:
        """Line up the log of the next container in the same place: the kubelet counts the restarts in its name."""
        if path := self._path_after_restart():
            new = self._open_path(path)
            if new is not None:
                self._path = path
                line = [*self._unread_siblings(new).all, new]
                line[0].breaks = True
                self._parts += line

    def _path_after_restart(self) -> str | None:
        container = container_of(self._path)
        if container is None:
            return None
        directory = os.path.dirname(self._path)
        later = [number for number in restarts(directory) if number > container.restart]
        return os.path.join(directory, f"{later[0]}.log") if later else None

    def _open_path(self, path: str = "") -> PlainPart | None:
        """Open the file at the path; None with `problem` set if that cannot be."""
        path = path or self._path
        try:
            part = PlainPart(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as error:
            self.problem = self._why(error)
            self._forbidden = not isinstance(error, (FileNotFoundError, NotADirectoryError))
            return None
        self._forbidden = not stat.S_ISREG(part.opened.st_mode)
        if self._forbidden:
            self.problem = f"{path} is not a regular file"
            part.close()
            return None
        self.problem = ""
        return part

    def _why(self, error: OSError) -> str:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return f"{self._path} does not exist" if self.required else ""
        return str(explain(self._path, error))

    def _stands(self, part: Part) -> bool:
        """Whether it is still the file at the path."""
        with suppress(OSError):
            return ident_of(os.stat(self._path)) == part.ident
        return False

    # -- emptied and written anew (copytruncate) ----------------------------------------------------------------------

    def _on_other_content(self, part: Part) -> None:
        """What was read is not in the file any more: look for the rest of it in the copies, then begin anew."""
        assert isinstance(part, PlainPart)
        if len(self._parts) > 1:
            self._lose("truncated after it was rotated", part.last_size - part.offset)
            part.spent = True
            return
        unread = self._unread_siblings(part, renamed=not self._stands(part))
        found = find_mark(unread.all, part.mark)
        if found is None:
            self.generation += 1
            self._lose("truncated", part.last_size - part.offset)
        renewed = part.renewed()
        self._parts = [*([found] if found else []), *(one for one in unread.older if one is not found), renewed]
        self._parts[0].breaks = found is None and part.last_size > part.offset
        # What was rotated after ours was comes after it, at the next look.
        close_all(part, *(one for one in unread.newer if one is not found))

    def _was_copied_unread(self, part: Part) -> bool:
        """Whether a part of which nothing was read has been copied away and emptied since it was opened."""
        if part.offset or not isinstance(part, PlainPart):
            return False
        before, part.opened = part.opened, os.fstat(part.fd)
        if (before.st_size, before.st_mtime_ns) == (part.opened.st_size, part.opened.st_mtime_ns):
            return False
        copies = []
        content = part.lead()
        siblings = self._unread_siblings(part, renamed=not self._stands(part))
        close_all(*siblings.newer)
        for copy in siblings.older:
            if content.startswith(copy.lead()):  # copied, but not emptied yet
                copy.close()
            else:
                copies.append(copy)
        self._parts[:0] = copies
        return bool(copies)

    # -- beginning and going on ---------------------------------------------------------------------------------------

    def _load(self, position: dict[str, Any]) -> None:
        self.generation = position["generation"]
        self._left = position["left"]
        self._past = Past(position["known"])
        if position["torn"]:
            self._last_byte = b""
        if self._container and os.path.dirname(position["path"]) == os.path.dirname(readable_name(self._path)):
            self._path = os.path.join(os.path.dirname(self._path), os.path.basename(position["path"]))

    def _open(self) -> None:
        new = self._open_path()
        if new is None and (self._forbidden or not self._has_directory_changed()):
            return
        if self._past is not None:
            self._resume(new)
        else:
            self._past = Past()
            for old in self._unread_siblings(*([new] if new else [])).all:
                self._past.add(old)
                old.close()
            self._past.lost()  # what is older is not missed
            if new is not None:
                new.start_at(self._start_offset)
                self._parts = [new]
        if not self._parts and (later := self._path_after_restart()):
            self._path = later

    def _resume(self, new: PlainPart | None) -> None:
        mark = Mark.from_json(self._saved) if self._saved else NOTHING_READ
        at_path = [new] if new else []
        found: Part | None = None
        if new is not None and new.ident == mark.ident and new.seek(mark):
            line: list[Part] = [*([] if mark.offset else self._unread_siblings(new).all), new]
        else:
            unread = self._unread_siblings(*at_path).all
            found = find_mark(unread, mark)
            line = [*([found] if found else []), *(part for part in unread if part is not found)]
            if new is not None and (new.opened.st_size or not line):
                line.append(new)
            elif new is not None:
                new.close()
            if line and found is None and mark.offset and (new is None or self._stands(new)):
                if not self._left:
                    self._lost.append(("rotated away", 0))
                    line[0].breaks = True
                self.generation += 1
        if new is not None and not self._stands(new):
            close_all(*{id(part): part for part in (*line, new)}.values())
            return
        self._parts = line
        if line and self._saved:
            self._resume_trailing([Mark.from_json(value) for value in self._saved["trailing"]])
            self._saved = None

    def _resume_trailing(self, marks: list[Mark]) -> None:
        for part in self._known_past.open_all(self._path):
            mark = next((mark for mark in marks if mark.ident == part.ident), None)
            at_hand = any(part.ident == other.ident for other in self._parts)
            if mark and not at_hand and isinstance(part, PlainPart) and part.seek(mark):
                part.quiet_since = self._clock()
                self._trailing.append(part)
            else:
                part.close()

    def _give_up(self, error: OSError) -> None:
        self.problem = str(explain(self._path, error))
        self.close()

    # -- old files that are still written to --------------------------------------------------------------------------

    def _read_trailing(self) -> bytes:
        """Return whole lines that arrived in renamed files; never between the halves of a line of the current one."""
        for part in tuple(self._trailing):
            if data := self._read_late(part):
                return data
        return b""

    def _read_late(self, part: PlainPart) -> bytes:
        now, size = self._clock(), part.last_size
        data = part.read()
        if data is None:  # a script's `cp log log.1` wrote another content into it, which may be unread
            self._forget(part)
            return b""
        if part.last_size != size:
            part.quiet_since = now
        deleted = not os.fstat(part.fd).st_nlink
        over = now - part.quiet_since >= (_QUIET_DELETED if deleted else _QUIET)
        whole = len(data) if over or len(data) == BLOCK else data.rfind(b"\n") + 1
        if self._last_byte != b"\n" and now - self._last_time < _TORN:
            whole = 0
        if whole < len(data):
            part.give_back(len(data) - whole)
        elif over:
            self._drop(part)
        return data[:whole]

    @property
    def _known_past(self) -> Past:
        assert self._past is not None, "_open sets it before anything is read"
        return self._past

    def _unread_siblings(self, *present: Part, renamed: bool = False) -> Unread:
        for part in [part for part in self._trailing if not part.is_intact()]:
            self._forget(part)
        return self._known_past.unread(self._path, present, self._trailing, renamed=renamed)

    def _lose(self, reason: str, size: int) -> None:
        if size > 0:
            self._lost.append((reason, size))
