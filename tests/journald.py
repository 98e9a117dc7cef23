"""Real journals for tests: made from text by systemd-journal-remote, or written by a journald of our own.

The journald runs in a mount namespace with an empty /run, so that it touches no journal of the machine. What is logged
under a unit runs in a cgroup of that name, as systemd would start it, since that is what journald takes the unit from.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Protocol

import pytest

REMOTE = "/lib/systemd/systemd-journal-remote"
JOURNALD = "/lib/systemd/systemd-journald"
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip().replace("-", "")
PATIENCE = 20.0  # seconds that a real journal may take on a busy machine

Entry = Mapping[str, str | bytes | list[str | bytes]]

needs_remote = pytest.mark.skipif(
    not (os.access(REMOTE, os.X_OK) and shutil.which("journalctl")), reason="needs systemd-journal-remote and journalctl"
)


class Readable(Protocol):
    """What `read_until` needs of a source."""

    def read(self) -> bytes:
        """See Source."""
        ...

    def fileno(self) -> int | None:
        """See Source."""
        ...


def export(entries: Iterable[Entry]) -> bytes:
    """Write entries in journald's export format, with each value in its binary form."""
    data = bytearray()
    for entry in entries:
        for name, values in entry.items():
            for value in values if isinstance(values, list) else [values]:
                raw = value.encode() if isinstance(value, str) else value
                if name.startswith("__") or name == "_BOOT_ID":
                    data += f"{name}=".encode() + raw + b"\n"
                else:
                    data += name.encode() + b"\n" + len(raw).to_bytes(8, "little") + raw + b"\n"
        data += b"\n"
    return bytes(data)


def entry(
    message: str | bytes | list[str | bytes], seconds: float, *, unit: str = "vllm.service", pid: str = "7", **more: str
) -> Entry:
    """One entry of a unit, so many seconds after (or before) now."""
    stamp = int((time.time() + seconds) * 1e6)
    fields: dict[str, str | bytes | list[str | bytes]] = {
        "__REALTIME_TIMESTAMP": str(stamp),
        "__MONOTONIC_TIMESTAMP": str(stamp % 10**12),
        "_BOOT_ID": BOOT,
        "_SYSTEMD_UNIT": unit,
        "_PID": pid,
        "MESSAGE": message,
    }
    return fields | more


def make_journal(path: Path, entries: Iterable[Entry]) -> None:
    """Write a journal file; its directory is what `journalctl -D` takes."""
    done = subprocess.run([REMOTE, "-o", str(path), "-"], input=export(entries), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def read_until(source: Readable, enough: Callable[[bytes], bool]) -> bytes:
    """Read until there is enough; select() waits, and a source that brings too little fails the test."""
    data = bytearray()
    deadline = time.monotonic() + PATIENCE
    while not enough(bytes(data)):
        assert time.monotonic() < deadline, f"only {bytes(data[-2000:])!r} came; {getattr(source, 'problem', '')}"
        if more := source.read():
            data += more
        else:
            fd = source.fileno()
            select.select([] if fd is None else [fd], [], [], 0.1)
    return bytes(data)


class Journald:
    """A journald, and what writes to it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._cgroups: set[str] = set()
        self.inside = ("nsenter", "-m", "-t", str(process.pid))
        self.journalctl = (*self.inside, "journalctl")

    @contextlib.contextmanager
    def writer(self, unit: str) -> Iterator[IO[bytes]]:
        """Give a pipe to the standard input of a process that writes what it reads as the unit.

        It lives until the pipe is closed, since journald looks a process up when it reads its line.
        """
        self._cgroups.add(unit)
        copy = "import sys,os\nwhile data := os.read(0, 1 << 20): os.write(1, data)"
        cgroup = f"/sys/fs/cgroup/{unit}"
        script = f'mkdir -p {cgroup} && echo $$ > {cgroup}/cgroup.procs && exec systemd-cat "$@"'
        command = [*self.inside, "sh", "-c", script, "sh", sys.executable, "-c", copy]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            yield process.stdin
        assert process.returncode == 0

    def run(self, *arguments: str) -> str:
        """Run journalctl with arguments."""
        return subprocess.run(
            [*self.journalctl, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stdout

    def close(self) -> None:
        """End it, and remove the cgroups."""
        for unit in self._cgroups:
            subprocess.run([*self.inside, "rmdir", f"/sys/fs/cgroup/{unit}"], check=False, capture_output=True)
        self._process.terminate()
        self._process.wait(PATIENCE)


@contextlib.contextmanager
def journald(settings: str = "RateLimitBurst=0") -> Iterator[Journald]:
    """Start a journald with lines for its configuration; the test is skipped where that cannot be done."""
    missing = [name for name in ("unshare", "nsenter", "systemd-cat", "journalctl") if not shutil.which(name)]
    if missing or not os.access(JOURNALD, os.X_OK) or os.geteuid() != 0:
        pytest.skip(f"needs root and journald{' and '.join(['', *missing])}")
    if os.path.exists("/run/systemd/system"):
        pytest.skip("the cgroups of this machine belong to its own systemd")
    script = (
        "mount -t tmpfs tmpfs /run && mount -t cgroup2 none /sys/fs/cgroup && mkdir /sys/fs/cgroup/lmdiag-probe"
        " && rmdir /sys/fs/cgroup/lmdiag-probe && mkdir -p /run/systemd/journal /run/log/journal"
        " /run/systemd/journald.conf.d && printf '[Journal]\\nReadKMsg=no\\nAudit=no\\n%s\\n' \"$1\""
        f" > /run/systemd/journald.conf.d/test.conf && echo ready && exec {JOURNALD}"
    )
    process = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", script, "sh", settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline() != b"ready\n":
            pytest.skip(f"no mount namespace with cgroups here: {process.stderr.read().decode().strip()}")
        _wait_for_socket(process)
        journal = Journald(process)
        try:
            yield journal
        finally:
            journal.close()


def _wait_for_socket(process: subprocess.Popen[bytes]) -> None:
    socket = Path(f"/proc/{process.pid}/root/run/systemd/journal/io.systemd.journal")
    deadline = time.monotonic() + PATIENCE
    while not socket.exists():
        assert process.poll() is None, "journald ended at once"
        assert time.monotonic() < deadline, "journald does not listen"
        select.select([], [], [], 0.02)
