"""A program that gets each message on its standard input; no shell reads anything of it."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.forward.data import record
from lmdiag.forward.message import DELIVERED, REJECTED, RETRY, Outcome
from lmdiag.report.control import clip, one_line, visible

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig
    from lmdiag.forward.message import Message

_INHERITED = ("PATH", "HOME", "LANG", "TZ")
"""Of our environment. Not the rest: it may hold tokens, the way to the credentials of other sinks, and NOTIFY_SOCKET,
by which a program could speak for the daemon."""
_REFUSED = 65
"""EX_DATAERR of sysexits.h: this message will never be taken."""
_OUTPUT = 16 << 10
_SHOWN = 300
_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL, and between that and giving up."""
_CHUNK = 1 << 16
_PAUSE = 0.02
"""Seconds between two looks whether it has ended."""


class _Ended(NamedTuple):
    status: int | None
    """As subprocess.Popen.returncode; None: it had to be killed."""
    output: bytes
    """The last of what it wrote to standard output and error."""


class ExecSink:
    """Runs the program for one message at a time.

    Exit status 0 is delivered, 65 (EX_DATAERR) rejected; anything else is tried again. The line is that of the file
    sink; LMDIAG_KEY, LMDIAG_STATE, LMDIAG_SEVERITY, LMDIAG_CARD and LMDIAG_INSTANCE say the same in short. A program
    that exits may leave others behind, which are not waited for; one that exceeds `timeout` is ended with its process
    group: SIGTERM, and a second later SIGKILL.
    """

    batch = 1

    def __init__(self, config: SinkConfig) -> None:
        self._config = config

    def send(self, messages: Sequence[Message], now: float) -> Outcome:  # noqa: ARG002 (the time is in the messages)
        """Run the program for the message."""
        (message,) = messages
        return self._run(message)

    def preview(self, messages: Sequence[Message], now: float) -> str:  # noqa: ARG002
        """Return what is run, the variables that it gets from us, and its standard input."""
        (message,) = messages
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in _variables(message).items())
        return f"{variables}{one_line(shlex.join(self._config.command))} <<<\n{record(message)}"

    def _run(self, message: Message) -> Outcome:
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        program = one_line(self._config.command[0])
        try:
            ended = _run(
                self._config.command, record(message).encode(), environment | _variables(message), self._config.timeout
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return Outcome(RETRY, one_line(f"{program} cannot be run: {reason}"))
        return _outcome(program, ended, self._config.timeout)


def make(config: SinkConfig) -> ExecSink:
    """Make the sink. Nothing is run before something is sent."""
    return ExecSink(config)


def _variables(message: Message) -> dict[str, str]:
    incident = message.incident
    found = {
        "LMDIAG_KEY": message.key,
        "LMDIAG_STATE": incident.state,
        "LMDIAG_SEVERITY": incident.severity,
        "LMDIAG_CARD": incident.card or "",
        "LMDIAG_INSTANCE": message.instance,
    }
    return {name: one_line(value) for name, value in found.items()}


def _outcome(program: str, ended: _Ended, timeout: float) -> Outcome:
    output = visible(ended.output.decode("utf-8", "replace")).strip()
    if ended.status == 0:
        return Outcome(DELIVERED, answer=output)
    if ended.status is None:
        what = f"was killed after {timeout:g} s"
    elif ended.status < 0:
        what = f"was ended by signal {-ended.status}"
    else:
        what = f"exited with {ended.status}"
    said = clip(one_line(output.splitlines()[-1]), _SHOWN) if output else ""
    detail = f"{program} {what}" + (f": {said}" if said else "")
    return Outcome(REJECTED if ended.status == _REFUSED else RETRY, detail, answer=output)


def _run(command: Sequence[str], data: bytes, environment: dict[str, str], timeout: float) -> _Ended:
    """Run a program with the data on its standard input. Raises OSError, and ValueError for a NUL, if it cannot be.

    It reads the data from memory, not from a pipe: one that reads nothing of it, or half, holds nobody up.
    """
    until = time.monotonic() + timeout
    source = os.memfd_create("lmdiag", os.MFD_CLOEXEC)
    try:
        with open(source, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(source, 0, os.SEEK_SET)
        process = subprocess.Popen(  # noqa: S603 (the operator's own command)
            command,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    finally:
        os.close(source)
    return _wait(process, until)


def _wait(process: subprocess.Popen[bytes], until: float) -> _Ended:
    """Wait for a process, and kill its group if it takes too long; keep the last of what it says."""
    assert process.stdout is not None, "it has a pipe"
    with process.stdout as pipe:
        watch = _Watch(process.pid, pipe.fileno())
        if watch.ended_by(until):
            return _Ended(process.wait(), watch.output)
        # Until it is waited for, its number is its group's, so nobody else's is hit.
        _signal_group(process.pid, signal.SIGTERM)
        watch.ended_by(time.monotonic() + _GRACE)
        _signal_group(process.pid, signal.SIGKILL)
        if watch.ended_by(time.monotonic() + _GRACE):  # else a disk or a driver holds it, which nobody can end
            process.wait()
        return _Ended(None, watch.output)


class _Watch:
    """Reads what a process says for as long as it lives, and keeps the last of it.

    The end of the process counts, not that of its output: what it leaves behind may hold the pipe for ever.
    """

    def __init__(self, pid: int, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self._pid = pid
        self._pipe = pipe
        self._open = True
        self.output = b""

    def ended_by(self, until: float) -> bool:
        """Read until the process ends, or until then (monotonic seconds); return whether it has ended."""
        with selectors.DefaultSelector() as selector:
            if self._open:
                selector.register(self._pipe, selectors.EVENT_READ)
            while (left := until - time.monotonic()) > 0:
                if selector.select(min(left, _PAUSE)) and not self._read():
                    selector.unregister(self._pipe)
                if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    self._read()
                    return True
        return False

    def _read(self) -> bool:
        """Take what the pipe holds, a chunk at most; return whether more may come."""
        with suppress(BlockingIOError):
            data = os.read(self._pipe, _CHUNK)
            self.output = (self.output + data)[-_OUTPUT:]
            self._open = bool(data)
        return self._open


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone, or another user's (sudo)
        os.killpg(group, number)
