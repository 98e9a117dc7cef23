"""The daemon is killed with -9 at random moments, while a server fails to start again and again and its log is rotated."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
from failing import Log, Writer, failing_start, message
from watching import Watch, scanned

SEED = int(os.environ.get("LMDIAG_SEED") or random.SystemRandom().randrange(1 << 32))
"""Of all randomness here; a failing test names it."""


@pytest.mark.parametrize(
    ("kills", "append"),
    [(10, True), pytest.param(40, False, marks=pytest.mark.system), pytest.param(300, True, marks=pytest.mark.system)],
    ids=["10", "40, with NULs behind a truncation", "300"],
)
def test_killed_at_random_moments_it_reports_every_incident_under_one_id(
    tmp_path: Path, kills: int, append: bool
) -> None:
    chance = random.Random(SEED)  # noqa: S311
    path = tmp_path / "logs" / "server.log"
    path.parent.mkdir()
    log = Log(path, append=append)
    writer = Writer(log, random.Random(chance.random()), pause=0.6, rotations=0.1)  # noqa: S311
    watch = Watch([path], tmp_path, "--from", "start")
    with watch:
        log.write(failing_start(0))
        watch.until(watch.incidents, "the first incident")  # what was rotated away before the first start is not read
        with writer:
            for _ in range(kills):
                watch.read_for(chance.uniform(0, 1.5))
                watch.stop(signal.SIGKILL)
                if chance.random() < 0.2:
                    writer.join(chance.uniform(0, 1))  # the daemon is away for a while
                watch.start()
        total = writer.written
        assert log.rotations > kills // 20
        with_seed(watch, total)
    assert_all_once(watch, total)
    fingerprints = {one["fingerprint"] for one in each_scanned(tmp_path, total)}
    assert {one.data["fingerprint"] for one in watch.incidents()} == fingerprints, f"seed {SEED}"


def with_seed(watch: Watch, total: int) -> None:
    """Wait until all are reported; the message of a failure names the seed and those that are missing."""
    try:
        watch.until(lambda: not missing(watch, total), "every incident reported", seconds=60)
    except AssertionError as error:
        raise AssertionError(
            f"seed {SEED}: of {total} incidents {missing(watch, total)} are missing; {error}"
        ) from error


def missing(watch: Watch, total: int) -> list[int]:
    """Return the numbers that were not reported."""
    seen = {one.message for one in watch.incidents()}
    return [number for number in range(total) if message(number) not in seen]


def assert_all_once(watch: Watch, total: int) -> None:
    """No incident has two ids, and there are no others."""
    numbered = {message(number) for number in range(total)}
    others = [
        (one.message, one.data["title"], one.data["evidence"])
        for one in watch.incidents()
        if one.message not in numbered
    ]
    assert others == [], f"seed {SEED}"
    twice = {one.message: watch.ids()[one.data["fingerprint"]] for one in watch.incidents()}
    assert {text: ids for text, ids in twice.items() if len(ids) > 1} == {}, f"seed {SEED}"


def each_scanned(directory: Path, total: int) -> Iterable[dict[str, object]]:
    """Scan each start in a file of its own: in one log `scan` folds earlier causes into the newest."""
    paths = []
    for number in range(total):
        paths.append(directory / f"start-{chr(97 + number % 26)}{number}.txt")
        paths[-1].write_bytes(failing_start(number))
    found = scanned(*paths)
    assert len(found) == total
    return found
