"""A node with a log and the daemon's round on it, with a clock that the test drives, real files and a real state."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from lmdiag.config import WatchConfig
from lmdiag.forward.forwarder import Forwarder
from lmdiag.match.library import Library
from lmdiag.read.wake import PollWaker
from lmdiag.watch.counters import Counters
from lmdiag.watch.daemon import Daemon
from lmdiag.watch.main import schedule
from lmdiag.watch.outlets import Outlet
from lmdiag.watch.sources import Streams
from lmdiag.watch.store import Store
from lmdiag.watch.tracker import Tracker


class Node:
    """A node with a log, and the daemon on it, which can be stopped and killed."""

    def __init__(self, directory: Path, library: Library, **settings: Any) -> None:
        directory.mkdir(exist_ok=True)
        self.log = directory / "server.log"
        self.log.touch()
        self.now = 1_796_100_000.0
        self.err = io.StringIO()
        self._settings = {"paths": (str(self.log),), "state": str(directory / "state"), "from_": "start", **settings}
        self._library = library
        self.forwarder: Forwarder | None = None
        self._said = 0
        self.start()

    def start(self) -> None:
        """Start the daemon."""
        config = WatchConfig(**self._settings)
        self.out = io.StringIO()
        self._said = 0
        self.store = Store(config.state)
        waker = PollWaker()
        streams = Streams(config, self._library, self.store.sources(), waker, own=frozenset())
        outlet = Outlet(self.out, self._library.card, format="jsonl")
        tracker = Tracker(schedule(config), self.store.incidents())
        self.counters = Counters()
        self.daemon = Daemon(config, self._library, streams, tracker, self.store, outlet, self.counters, self.err, cpu=lambda: 0.0, forwarder=self._forwarder(config))
        self.daemon.streams.discover(self.now)

    def _forwarder(self, config: WatchConfig) -> Forwarder | None:
        if config.sinks:
            self.forwarder = Forwarder(config, self._library.card, lambda: self.now, timeout=0.0)
        return self.forwarder

    def kill(self) -> None:
        """End the daemon as kill -9 does: nothing more is saved."""
        self.store.close()
        self.daemon.streams.close()

    def step(self, seconds: float = 0.0) -> list[tuple[str, str | None, int]]:
        """Let time pass and go round; return (state, card, count) of what was told."""
        self.now += seconds
        self.daemon.streams.discover(self.now)
        while self.daemon.step(self.now):
            pass
        return self.told()

    def told(self) -> list[tuple[str, str | None, int]]:
        """Return what was told since the last call."""
        lines = self.out.getvalue().splitlines()
        new, self._said = lines[self._said :], len(lines)
        return [(one["state"], one["card"], one["count"]) for one in map(json.loads, new)]

    def write(self, data: bytes) -> None:
        """Append to the log."""
        with self.log.open("ab") as file:
            file.write(data)
