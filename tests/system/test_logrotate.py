"""The real logrotate rotates a log into which a failing server writes: each incident is reported, and none twice."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from failing import Log, failing_start, message, pieces
from watching import Watch

LOGROTATE = shutil.which("logrotate", path=os.environ.get("PATH", "") + ":/usr/sbin")
STARTS = 12
_DATED = "dateext\n    dateformat -%Y%m%d-%s"
"""logrotate's date alone would let it rotate once a day."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(LOGROTATE is None, reason="logrotate is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="logrotate wants to own its configuration: run as root"),
]


class Rotator:
    """One configuration of the real logrotate, run by hand."""

    def __init__(self, directory: Path, log: Path, options: str) -> None:
        self._log = log
        self._state = directory / "logrotate.state"
        self._configuration = directory / "logrotate.conf"
        self._configuration.write_text(f"{log} {{\n    rotate 50\n    missingok\n    {options}\n}}\n")

    def start(self) -> subprocess.Popen[bytes]:
        """Rotate now, while the writer goes on."""
        assert LOGROTATE is not None
        return subprocess.Popen([LOGROTATE, "--force", "--state", self._state, self._configuration])

    def run(self) -> None:
        """Rotate now."""
        assert self.start().wait(30) == 0

    def rotated(self) -> list[str]:
        """Return the names of the rotated logs."""
        return sorted(path.name for path in self._log.parent.iterdir() if path != self._log)


def _name(options: str) -> str:
    return " ".join(options.replace("dateformat -%Y%m%d-%s", "").split())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory that logrotate accepts: nobody else can write in it."""
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o755)
    return logs


@pytest.mark.parametrize(
    "options",
    [
        "create",
        "create\n    compress\n    delaycompress",
        f"create\n    compress\n    {_DATED}",
        "create\n    compress",
        "copytruncate",
        "copytruncate\n    compress",
        f"copytruncate\n    compress\n    delaycompress\n    {_DATED}",
    ],
    ids=_name,
)
def test_each_incident_is_reported_once_whatever_logrotate_does(tmp_path: Path, directory: Path, options: str) -> None:
    chance = random.Random(options)  # noqa: S311
    log = Log(directory / "server.log")
    rotator = Rotator(tmp_path, log.path, options)
    with Watch([log.path], tmp_path, "--from", "start") as watch:
        log.write(failing_start(0))
        watch.until(watch.incidents, "the first incident")  # what was rotated away before the first start is not read
        for number in range(1, STARTS):
            parts = list(pieces(failing_start(number), chance))
            at = chance.randrange(len(parts))
            for part in parts[:at]:
                log.write(part)
            if "dateext" in options:
                # time(2), which logrotate asks, lags behind by a tick of the kernel
                after = int(time.time()) + 1.02
                watch.until(lambda after=after: time.time() > after, "another second, for another name")  # type: ignore[misc]
            write_over_a_rotation(log, rotator, parts[at], options)
            for part in parts[at + 1 :]:
                log.write(part)
            watch.read_for(chance.uniform(0, 0.3))
        log.close()
        watch.until(lambda: len(reported(watch)) == STARTS, "every incident reported")
    assert len(rotator.rotated()) == STARTS - 1
    assert reported(watch) == {message(number) for number in range(STARTS)}
    assert [ids for ids in watch.ids().values() if len(ids) > 1] == []


@pytest.mark.parametrize("options", ["create", "copytruncate", "create\n    compress"], ids=_name)
def test_what_is_rotated_while_the_daemon_is_away_is_reported_when_it_comes_back(
    tmp_path: Path, directory: Path, options: str
) -> None:
    log = Log(directory / "server.log")
    rotator = Rotator(tmp_path, log.path, options)
    watch = Watch([log.path], tmp_path, "--from", "start")
    with watch:
        log.write(failing_start(0))
        watch.until(lambda: reported(watch) == {message(0)}, "the first incident reported")
        watch.stop()
        log.write(failing_start(1))
        rotator.run()
        log.reopen()
        log.write(failing_start(2))
        log.close()
        watch.start()
        watch.until(lambda: len(reported(watch)) == 3, "the incidents of the time without a daemon")
    assert reported(watch) == {message(number) for number in range(3)}
    assert [ids for ids in watch.ids().values() if len(ids) > 1] == []


def write_over_a_rotation(log: Log, rotator: Rotator, part: bytes, options: str) -> None:
    """Write a piece and rotate: with `create` at the same time, if the old file is not compressed at once."""
    if options == "create" or ("delaycompress" in options and "create" in options.split()):
        rotating = rotator.start()
        for start in range(0, len(part), 512):
            log.write(part[start : start + 512])
        assert rotating.wait(30) == 0
    else:
        rotator.run()
        if "copytruncate" not in options:
            log.reopen()
        log.write(part)
    if "copytruncate" not in options:
        log.reopen()


def reported(watch: Watch) -> set[str]:
    """Return the messages of the incidents reported until now."""
    return {one.message for one in watch.incidents()}
