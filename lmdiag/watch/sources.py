"""The sources of the daemon: found by the configuration, each with its stream, resumed where the last run was."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lmdiag.read.discover import Discovery
from lmdiag.read.globs import MAGIC
from lmdiag.read.start import known_life, start_offset
from lmdiag.read.tail import FileSource
from lmdiag.watch.store import Saved
from lmdiag.watch.stream import Stream

if TYPE_CHECKING:
    from lmdiag.config import WatchConfig
    from lmdiag.match.library import Library
    from lmdiag.read.discover import Found
    from lmdiag.read.wake import Waker

SAFETY_POLL = 2.0
"""Seconds after which every file is looked at, whatever was notified."""
GONE_AFTER = 900.0
"""Seconds after which a source is given up whose file is not found any more, and from which nothing came."""
_MAX_GIVEN_UP = 200
_SOON = 0.2
"""Seconds between two searches while directories change."""


class Streams:
    """All sources that are read now."""

    def __init__(
        self,
        config: WatchConfig,
        library: Library,
        saved: Mapping[str, Saved],
        waker: Waker,
        own: frozenset[tuple[int, int]],
    ) -> None:
        """`own`: (device, inode) of the daemon's output, which it must not read."""
        self.gone: list[str] = []
        """Sources that were given up since somebody looked."""
        self.problems: list[str] = []
        self._library = library
        self._saved = dict(saved)
        self._waker = waker
        self._own = own
        self._streams: dict[str, Stream] = {}
        self._paths: dict[str, str] = {}  # path: name, of files
        self._changed = False
        self._deaf: set[str] = set()
        self._dirty: set[str] = set()
        self._ready: set[int] = set()
        self._first = True
        """What is found now was never read; what is found later is new."""
        self._patterns: list[str] = []
        self._searched_at = self._polled_at = self._deaf_polled_at = 0.0
        self._configure(config)

    def _configure(self, config: WatchConfig) -> None:
        known = set() if self._first else set(self._patterns)
        self._config = config
        self._patterns = [path for path in config.paths if path != "-"]
        self._first = not known.issuperset(self._patterns)
        self._discovery = Discovery(self._patterns, own=self._own, from_start=config.from_ == "start")
        for unit in config.journal:
            if f"journal:{unit}" not in self._streams:
                self._add(self._journal(unit, config))
        if "-" in config.paths and "-" not in self._streams:
            self._add(self._pipe("-"))

    def reload(self, config: WatchConfig, library: Library) -> None:
        """Go on with another configuration: what it does not name any more is given up."""
        self._library = library
        wanted = {f"journal:{unit}" for unit in config.journal} | ({"-"} & set(config.paths))
        self._configure(config)
        wanted |= {found.name for found in self._discovery.sources()}
        for name in [name for name in self._streams if name not in wanted]:
            self._drop(name)
        self._searched_at = 0.0

    # -- finding -----------------------------------------------------------------------------------------------------

    def discover(self, now: float) -> None:
        """Look for new files, when it is time or when a directory has changed."""
        if now - self._searched_at < (_SOON if self._changed else self._config.scan_interval):
            return
        self._searched_at, self._changed = now, False
        found = self._discovery.sources()
        self.problems = list(self._discovery.problems)
        for entry in found:
            if entry.name not in self._streams:
                self._add(self._pipe(entry.path) if entry.kind == "fifo" else self._file(entry))
            self._streams[entry.name].found_at = now
        self._first = False
        self._give_up(now)
        self._paths = {s.source.path: name for name, s in self._streams.items() if isinstance(s.source, FileSource)}
        self._waker.watch(list(self._paths), [_root(pattern) for pattern in self._patterns])
        self._deaf = {name for path, name in self._paths.items() if self._waker.deaf(path)}

    def _give_up(self, now: float) -> None:
        """Give up files that were not found for long, and names that were those of a directory to come."""
        for name, stream in list(self._streams.items()):
            if stream.kind == "file" and stream.found_at != now:
                silent = now - max(stream.found_at, stream.read_at or 0.0) > GONE_AFTER
                if stream.read_at is None or (silent and not stream.source.required):
                    self._drop(name)

    def _drop(self, name: str) -> None:
        """Give a source up; should it come back, it goes on where it was."""
        stream = self._streams.pop(name)
        if stream.read_at is not None:
            self._saved[name] = Saved(stream.source.position(), stream.save())
            if len(self._saved) > _MAX_GIVEN_UP:
                del self._saved[next(iter(self._saved))]
        stream.source.close()
        self.gone.append(name)

    def _add(self, stream: Stream) -> None:
        self._streams[stream.source.name] = stream

    def _file(self, entry: Found) -> Stream:
        """Follow a file from where it was read to, or from where the configuration says; a new one from its start."""
        saved = self._saved.pop(entry.name, None)
        if saved is not None:
            return self._resumed(entry, saved)
        return self._from_configured(entry)

    def _from_configured(self, entry: Found) -> Stream:
        offset, before = start_offset(entry.path, self._config.from_ if self._first else "start", _boot_time())
        source = FileSource(entry.path, entry.name, required=entry.required, position=None, start_offset=offset)
        return Stream(source, self._library, lines_before=before, baseline=self._first)

    def _resumed(self, entry: Found, saved: Saved) -> Stream:
        """Go on where the last run was. If its state cannot be used, read once more what it knew of the server's life."""
        try:
            source = FileSource(entry.path, entry.name, required=entry.required, position=saved.position)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):  # another version's, or damaged
            return self._from_configured(entry)
        stream = Stream(source, self._library, saved=saved.stream)
        if not stream.fresh:
            return stream
        blocks, before = known_life(*past) if (past := source.past()) else (iter(()), 0)
        stream = Stream(source, self._library, lines_before=before)
        for block in blocks:
            stream.feed(block, 0.0)
        return stream

    def _pipe(self, path: str) -> Stream:
        from lmdiag.read.pipes import PipeSource

        return Stream(PipeSource(path), self._library)

    def _journal(self, unit: str, config: WatchConfig) -> Stream:
        from lmdiag.read.journal import JournalSource

        saved = self._saved.pop(f"journal:{unit}", None)
        position: dict[str, Any] | None = saved.position if saved else None
        source = JournalSource(
            unit,
            position=position,
            start=config.from_,  # type: ignore[arg-type]
            own_unit=_own_unit(),
            follow=not config.once,
        )
        return Stream(source, self._library, saved=saved.stream if saved else b"", baseline=saved is None)

    # -- reading -----------------------------------------------------------------------------------------------------

    def all(self) -> list[Stream]:
        """Return every stream."""
        return list(self._streams.values())

    def selected(self, names: Collection[str] | None) -> Iterator[Stream]:
        """Return the streams of these names; None: all."""
        for name, stream in list(self._streams.items()):
            if names is None or name in names:
                yield stream

    def woken(self, ready: Collection[int], dirty: Collection[str]) -> None:
        """Note what the waker told: descriptors with data, and paths that changed."""
        self._ready |= set(ready)
        for path in dirty:
            if path in self._paths:
                self._dirty.add(self._paths[path])
            else:
                self._changed = True

    def awake(self, now: float) -> Collection[str] | None:
        """Return the names of the sources that are to be read now; None: all."""
        if now - self._polled_at >= SAFETY_POLL or now < self._polled_at:
            self._polled_at = self._deaf_polled_at = now
            self._dirty.clear()
            self._ready.clear()
            return None
        names = self._dirty | {name for name, stream in self._streams.items() if stream.source.fileno() in self._ready}
        if self._deaf and now - self._deaf_polled_at >= self._config.poll_interval:
            self._deaf_polled_at = now
            names |= self._deaf
        self._dirty, self._ready = set(), set()
        return names

    def again(self, name: str) -> None:
        """Read this source in the next round too: there was more than its turn allowed."""
        self._dirty.add(name)

    def wait(self, now: float) -> float:
        """Return the seconds until a file is to be polled."""
        due = self._polled_at + SAFETY_POLL
        if self._deaf:
            due = min(due, self._deaf_polled_at + self._config.poll_interval)
        if self._changed:
            due = min(due, self._searched_at + _SOON)
        return max(0.0, due - now)

    def filenos(self) -> list[int]:
        """Return the descriptors to select on."""
        numbers = (stream.source.fileno() for stream in self._streams.values() if not stream.source.ended)
        return [number for number in numbers if number is not None]

    @property
    def ended(self) -> bool:
        """Whether nothing will ever come any more."""
        return bool(self._streams) and not self._patterns and all(s.source.ended for s in self.all())

    @property
    def idle(self) -> bool:
        """Whether what was there at the start has been read, as far as a single pass goes."""
        return all(stream.source.ended or stream.kind != "journal" for stream in self.all())

    def close(self) -> None:
        """Close every source."""
        for stream in self.all():
            stream.source.close()


def _root(pattern: str) -> tuple[str, bool]:
    """Return the directory in which new files may appear, and whether those below it count too."""
    if os.path.isdir(pattern):
        return pattern, True
    if MAGIC.search(pattern):
        fixed = MAGIC.split(pattern, maxsplit=1)[0]
        return os.path.dirname(fixed) or ".", "/" in pattern[len(os.path.dirname(fixed)) + 1 :]
    return os.path.dirname(pattern) or ".", False


def _boot_time() -> float:
    """When the machine was started, in unix seconds (proc(5), /proc/stat)."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _own_unit() -> str | None:
    """The systemd unit that this process runs in, after cgroups(7), or None."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            names = [line.strip().rsplit("/", 1)[-1] for line in file]
    except OSError:
        return None
    return next((name for name in names if name.endswith(".service")), None)
