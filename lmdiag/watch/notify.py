"""What the daemon tells systemd: ready, status, alive, stopping, reloading; and the priority of each line in the journal.

The protocol is sd_notify(3): one datagram of NAME=VALUE lines to the socket that $NOTIFY_SOCKET names.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Mapping
from typing import Self

_PATIENCE = 1.0  # seconds for a socket whose queue is full; a second late is better than READY=1 lost
_PRIORITIES = {"critical": 2, "error": 3, "warning": 4, "notice": 5, "info": 6}  # syslog(3)


class Notifier:
    """Speaks to the service manager; without one every message is False and nothing happens."""

    def __init__(self, environment: Mapping[str, str], pid: int) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self.watchdog_interval = _watchdog_interval(environment, pid) if self._address else None
        """Seconds between two signs of life: half of what systemd waits for. None: nobody waits."""
        self._alive_at = -math.inf

    @classmethod
    def from_environment(cls) -> Self:
        """Speak to the manager that started this process, if one did."""
        return cls(os.environ, os.getpid())

    def ready(self, status: str = "") -> bool:
        """Say that the start, or a reload, is finished."""
        return self._send("READY=1", *_status(status))

    def status(self, text: str) -> bool:
        """Show one line in `systemctl status`."""
        return self._send(*_status(text))

    def alive(self, now: float) -> bool:
        """Keep the watchdog quiet; returns whether it was time to. `now` may be of any clock, and jump."""
        if self.watchdog_interval is None or self.wait(now) > 0:
            return False
        self._alive_at = now
        return self._send("WATCHDOG=1")

    def wait(self, now: float) -> float:
        """Return the seconds until `alive` is to be called again; inf if nobody waits for it."""
        if self.watchdog_interval is None:
            return math.inf
        past = now - self._alive_at
        return max(0.0, self.watchdog_interval - past) if past >= 0 else 0.0  # a clock that was set back

    def stopping(self, status: str = "") -> bool:
        """Say that the end was asked for and has begun."""
        return self._send("STOPPING=1", *_status(status))

    def reloading(self, monotonic_ns: int | None = None) -> bool:
        """Say that the configuration is read again; `ready` ends it.

        `monotonic_ns` is `time.monotonic_ns()`: systemd tells by it which SIGHUP is answered (Type=notify-reload).
        """
        at = time.monotonic_ns() if monotonic_ns is None else monotonic_ns
        return self._send("RELOADING=1", f"MONOTONIC_USEC={at // 1000}")

    def _send(self, *lines: str) -> bool:
        """Send one datagram. A manager that does not listen is no reason to stop reading logs: never raises."""
        if self._address is None or not lines:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(_PATIENCE)
                sock.connect(self._address)
                sock.sendall("\n".join(lines).encode(errors="backslashreplace"))
        except OSError:
            return False
        return True


def _address(name: str) -> str | None:
    """Read $NOTIFY_SOCKET: a path, or @NAME in the abstract namespace. A vsock is only for a virtual machine's init."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else None


def _watchdog_interval(environment: Mapping[str, str], pid: int) -> float | None:
    """Half of $WATCHDOG_USEC, if $WATCHDOG_PID does not name another process (a parent that left its environment)."""
    period, meant = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not (period.isascii() and period.isdigit()) or int(period) == 0 or meant not in ("", str(pid)):
        return None
    return int(period) / 2e6


def _status(text: str) -> tuple[str, ...]:
    """One line, whatever is in it: a line break would begin another assignment."""
    line = " ".join(text.split())
    return (f"STATUS={line}",) if line else ()


def goes_to_journal(descriptor: int, environment: Mapping[str, str]) -> bool:
    """Tell whether journald reads what is written there: $JOURNAL_STREAM is the device and inode of its pipe.

    The variable alone says nothing: it is inherited, and the output may have been sent to a file since.
    """
    device, _, inode = environment.get("JOURNAL_STREAM", "").partition(":")
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return (device, inode) == (str(found.st_dev), str(found.st_ino))


def with_priority(level: str, text: str) -> str:
    r"""Put the priority of a severity (or of "notice") in front of each line, as journald reads it: "<3>".

    journald makes an entry of each line; without its own prefix a line is of priority info, or of what the text says
    itself: a log's line that begins with <0> would be written to all terminals. It drops empty lines.

    >>> with_priority("error", "one\ntwo")
    '<3>one\n<3>two'
    """
    prefix = f"<{_PRIORITIES.get(level, 6)}>"
    body = text.removesuffix("\n")
    return "\n".join(prefix + line for line in body.split("\n")) + text[len(body) :]
