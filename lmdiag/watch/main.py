"""`lmdiag watch`: opens what the daemon needs, drives it, and closes it; the only place with signals and threads."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import TextIO

from lmdiag import __version__
from lmdiag.config import WatchConfig
from lmdiag.errors import LmdiagError
from lmdiag.forward.forwarder import Forwarder
from lmdiag.match.library import Library, check_directories, open_library
from lmdiag.read.wake import REST, Waker, open_waker
from lmdiag.report.control import visible
from lmdiag.watch.board import Board
from lmdiag.watch.counters import Counters
from lmdiag.watch.daemon import Daemon
from lmdiag.watch.notify import Notifier, goes_to_journal
from lmdiag.watch.outlets import Outlet
from lmdiag.watch.sources import Streams
from lmdiag.watch.store import Store
from lmdiag.watch.tracker import Schedule, Tracker

BUSY_REST = 0.05
"""Seconds between two reads of logs that are written fast: each wake-up costs as much as many lines."""

DRAIN, DRAIN_ONCE, CLOSE = 3.0, 30.0, 2.0
"""Seconds for what was just found to go out at the end, the same for a single pass, and for requests on their way."""
_AT_START = ("state", "listen", "poll", "format", "color", "width", "live")
"""Settings that a reload does not change."""
_KEPT = 30 * 86400.0
"""Seconds for which the place of a log is kept that is not found any more."""
_NEVER = 10 * 365 * 86400.0


def steady() -> Callable[[], float]:
    """Return a clock of unix seconds that nobody can set: when the machine's is set back, nothing must wait for it."""
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset


def watch(config: WatchConfig, reload: Callable[[], WatchConfig], out: TextIO, err: TextIO) -> int:
    """Watch until a signal says to stop, or all sources have ended. `reload` reads the configuration again (SIGHUP).

    Returns the exit code: 0; 2 if a single pass could not read what it was to read. Raises LmdiagError where it cannot
    start, and OSError where reports cannot be written.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # each log is held open, rotated ones for a while too
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65536), hard))
    with ExitStack() as stack:
        return _Loop(config, reload, out, err, stack).run()


def schedule(config: WatchConfig) -> Schedule:
    """Return when incidents are reported again and when they are over."""
    return Schedule(config.remind or (_NEVER,), config.quiet, config.quiet_down, config.severity)


class _Loop:
    """The process around a Daemon."""

    def __init__(
        self,
        config: WatchConfig,
        reload: Callable[[], WatchConfig],
        out: TextIO,
        err: TextIO,
        stack: ExitStack,
    ) -> None:
        self._config = config
        self._reload = reload
        self._clock = steady()
        self._stopping = False
        self._reloading = False
        self._waker: Waker = open_waker(poll=config.poll == "always")
        stack.callback(self._waker.close)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._notifier = Notifier.from_environment()
        library = _library(config)
        counters = Counters()
        store = Store(config.state)
        stack.callback(store.close)
        store.forget(self._clock() - _KEPT)
        streams = Streams(config, library, store.sources(), self._waker, own=_own_files(config.state, out, err))
        stack.callback(streams.close)
        journal = goes_to_journal(1, os.environ)
        outlet = Outlet(
            out, library.card, format=config.format, color=config.color, width=config.width, journal=journal
        )
        tracker = Tracker(schedule(config), store.incidents())
        self._forwarder = Forwarder(config, library.card) if config.sinks else None
        self._daemon = Daemon(
            config,
            library,
            streams,
            tracker,
            store,
            outlet,
            counters,
            err,
            pulse=lambda: self._notifier.alive(self._clock()),
            journal=goes_to_journal(2, os.environ),
            forwarder=self._forwarder,
        )
        self._board = Board(self._daemon, config, out, self._clock(), stack)
        stack.callback(self._stop_forwarding)
        if self._forwarder is not None:
            self._forwarder.start()
        for problem in (store.problem, *map(str, library.problems)):
            self._daemon.say(problem, problem)

    def run(self) -> int:
        """Go round until it is time to stop."""
        self._daemon.streams.discover(self._clock())
        found = self._summary()
        self._daemon.note(f"lmdiag {__version__}: {found}, state in {visible(self._config.state)}{self._board.address}")
        self._notifier.ready(found)
        gc.freeze()  # the cards stay; to look through them again and again would hold reports up
        while not self._stopping and self._round():
            pass
        self._notifier.stopping()
        self._daemon.finish(self._clock())
        if self._forwarder is not None:
            self._forwarder.drain(DRAIN_ONCE if self._config.once else DRAIN)
        self._board.show(self._clock())
        unread = [
            stream.source.name
            for stream in self._daemon.streams.all()
            if stream.source.required and stream.source.problem
        ]
        return 2 if self._config.once and unread else 0

    def _round(self) -> bool:
        """Wait for something to do, and do it; return whether there is more to come."""
        daemon, streams = self._daemon, self._daemon.streams
        if self._reloading:
            self._take_configuration()
        now = self._clock()
        began = time.process_time()
        streams.discover(now)
        self._say_problems()
        more = daemon.step(now, streams.awake(now))
        daemon.counters.stepped(time.time())  # who asks for the health has no other clock
        self._board.update(now)
        if daemon.told_at == now:
            self._notifier.status(self._summary())
        self._notifier.alive(now)
        if not more and (streams.ended or (self._config.once and streams.idle)):
            return False
        pause = (time.process_time() - began) * (1 / self._config.max_cpu - 1)
        rest = 0.0 if more else min(daemon.wait(now), streams.wait(now), self._notifier.wait(now))
        if pause > 0.0005:
            time.sleep(min(pause, 0.5))  # leaves the cores to vLLM; a flood is then read in larger pieces
        if rest > pause:
            self._waker.rest = BUSY_REST if daemon.busy else REST
            streams.woken(self._waker.wait(rest - pause, streams.filenos()), self._waker.dirty())
            daemon.counters.add_wakeup()
        return True

    def _stop_forwarding(self) -> None:
        if self._forwarder is not None:
            self._forwarder.close(CLOSE)

    def _summary(self) -> str:
        """Say what is watched and what is wrong, in the words of `systemctl status`."""
        sources = len(self._daemon.streams.all())
        found = sum(item.open and bool(item.reported_severity) for item in self._daemon.tracker.incidents)
        return (
            f"watching {sources} source{'' if sources == 1 else 's'}, {found} open incident{'' if found == 1 else 's'}"
        )

    def _reload_forwarding(self, config: WatchConfig, library: Library) -> None:
        if self._forwarder is not None:
            self._forwarder.reload(config, library.card)
        elif config.sinks:
            self._forwarder = self._daemon.handover.forwarder = Forwarder(
                config._replace(state=self._config.state), library.card
            )
            self._forwarder.start()

    def _say_problems(self) -> None:
        """Tell once what cannot be listened to or looked at."""
        for problem in (*self._waker.problems, *self._daemon.streams.problems):
            self._daemon.say(problem, problem)
        self._waker.problems.clear()
        if self._forwarder is None:
            return
        self._daemon.say("the outbox", self._forwarder.problem)
        for sink in self._forwarder.statuses():
            self._daemon.say(f"sink {sink.name}", sink.problem and f"sink {sink.name}: {sink.problem}")

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._reloading = True
        elif self._stopping:
            raise KeyboardInterrupt  # the second time it does not wait, as for a pipe that nobody reads
        else:
            self._stopping = True
        self._waker.wake()

    def _take_configuration(self) -> None:
        """Read configuration and cards again; what is wrong with them leaves the last good ones in place."""
        self._reloading = False
        self._notifier.reloading(time.monotonic_ns())
        try:
            config = self._reload()
            library = _library(config)
            for problem in map(str, library.problems):
                self._daemon.say(problem, problem)
            self._reload_forwarding(config, library)
            self._daemon.reload(config, library)
            self._daemon.tracker.schedule = schedule(config)
            self._daemon.streams.reload(config, library)
            fixed = [name for name in _AT_START if getattr(config, name) != getattr(self._config, name)]
            self._config = config
            self._board.config_problem = ""
            rest = f"; {', '.join(fixed)} will be with the next start" if fixed else ""
            self._daemon.note(f"lmdiag: configuration and cards were read again{rest}")
        except LmdiagError as error:
            self._board.config_problem = f"configuration: {error}; the last good one is in use"
            self._daemon.note(f"lmdiag: {visible(str(error))}; the last good configuration stays in use", "warning")
        self._notifier.ready()


def _library(config: WatchConfig) -> Library:
    check_directories(config.rules)
    return open_library(config.rules, config.disabled)


def _own_files(state: str, *streams: TextIO) -> frozenset[tuple[int, int]]:
    """Return (device, inode) of what the daemon writes to: it must not read itself."""
    directory = os.stat(state)
    found = {(directory.st_dev, directory.st_ino)}
    for stream in (*streams, sys.__stdout__, sys.__stderr__):
        try:
            status = os.fstat(stream.fileno()) if stream else None
        except (OSError, ValueError):
            continue
        if status:
            found.add((status.st_dev, status.st_ino))
    return frozenset(found)
