"""Writes the log of a vLLM, deterministically, and beside it the truth: where which exception was raised.

    python -m benchmarks.genlog PATH --size 1e9 --kind dense

sparse   a server that serves, with a traceback every 10 MB, of an engine or raw
dense    the same with one every 100 KB
failing  the same as dense, but what fails are requests, and the engine dies now and then and is started again: many incidents
loop     a server that fails to start, again and again, every 20 KB with its whole start
PATH.truth.json: `bytes`, `lines`, `quoted` (prompts that quote an error), `tracebacks` (a chain is one),
and `raised`: [offset of the first
byte, type, message, logged, chained] of each cause. Run it as a process of its own: a child's peak memory begins
at its parent's.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from benchmarks.chatter import MARK, QUOTED, STAMP, Chatter
from benchmarks.failures import API, CAUSED, HEAD, Failure, Raised, death, engine_error, failed_request, failures
from benchmarks.lives import failed_start, processes, start

EVERY = {"sparse": 10_000_000, "dense": 100_000, "failing": 100_000}
KINDS = (*EVERY, "loop")
_FAILURES, _BLOCKS, _BLOCK = 1500, 64, 64_000
_BEGAN = 1_786_700_000
_DEATHS = 0.02
"""How many of the tracebacks of a server whose requests fail are its engine's end."""
_LIFE = 20_000
"""About the bytes of a failed start."""
_USUAL = 0.9
"""How much of a crash loop ends in the same failure; the rest in one of any."""


class Log:
    """A log that is being written, and its truth."""

    def __init__(self, file: BinaryIO, chance: random.Random) -> None:
        self.size = self._lines = self._quoted = self._tracebacks = 0
        self._file = file
        self._raised: list[tuple[int, *tuple[object, ...]]] = []
        self._seconds = _BEGAN
        self.chance = chance

    def stamp(self) -> str:
        """Return the time of the next records: it passes."""
        self._seconds += self.chance.randrange(4)
        return time.strftime("%m-%d %H:%M:%S", time.gmtime(self._seconds))

    def write(self, data: bytes, raised: Raised | None = None) -> None:
        """Write whole lines, and note what was raised in them."""
        if raised is not None:
            self._raised.append((self.size, *raised))
            self._tracebacks += data.count(HEAD) - data.count(CAUSED)
        self._quoted += data.count(QUOTED.encode())
        self._lines += data.count(b"\n")
        self.size += self._file.write(data)

    def truth(self) -> dict[str, object]:
        """Return what was written."""
        counts = {"bytes": self.size, "lines": self._lines, "quoted": self._quoted, "tracebacks": self._tracebacks}
        return {**counts, "raised": self._raised}


def write_log(path: Path, size: int, kind: str = "sparse", *, seed: int = 1, known: Sequence[Failure] = ()) -> None:
    """Write a log of about `size` bytes, in whole lines and whole starts, and its truth.

    `known` are the failures to choose from, else the catalogue's.
    Raises OSError, and CatalogError where there is no catalogue.
    """
    chosen = known or failures(_FAILURES)
    with path.open("wb", buffering=1 << 20) as file:
        log = Log(file, random.Random(seed))  # noqa: S311 - reproducible text, no secret
        if kind == "loop":
            _crash(log, size, chosen)
        else:
            _serve(log, size, chosen, kind)
    Path(f"{path}.truth.json").write_text(json.dumps(log.truth()))


def _crash(log: Log, size: int, known: Sequence[Failure]) -> None:
    usual = log.chance.choice(known)
    while log.size < max(1, size - _LIFE // 2):
        failure = usual if log.chance.random() < _USUAL else log.chance.choice(known)
        text, raised = failed_start(failure, log.stamp(), processes(log.chance.randrange(500, 60_000)), log.chance)
        log.write(text.encode(), raised)


def _serve(log: Log, size: int, known: Sequence[Failure], kind: str) -> None:
    log.write(start(log.stamp(), processes(API)).encode())
    more = _blocks(log, [failure.message(log.chance) for failure in known], min(size, _BLOCKS * _BLOCK))
    fail, due = _fail if kind == "failing" else _err, EVERY[kind] // 2
    while log.size < size:
        end = min(size, due)
        while log.size < end:
            log.write(_until(next(more), end - log.size))
        if log.size >= due:
            fail(log, log.chance.choice(known))
            due += EVERY[kind]


def _err(log: Log, failure: Failure) -> None:
    text, raised = engine_error(failure, log.stamp(), log.chance)
    log.write(text.encode(), raised)


def _fail(log: Log, failure: Failure) -> None:
    """Write a failed request; or the death of the engine, after which the server is started again."""
    dies = log.chance.random() < _DEATHS
    text, raised = (death if dies else failed_request)(failure, log.stamp(), log.chance)
    log.write(text.encode(), raised)
    if dies:
        log.write(start(log.stamp(), processes(API)).encode())


def _until(block: bytes, room: int) -> bytes:
    """Return the lines of a block that begin within so many bytes."""
    return block if len(block) <= room else block[: block.index(b"\n", room - 1) + 1]


def _blocks(log: Log, messages: Sequence[str], size: int) -> Iterator[bytes]:
    """Yield blocks without end: of a few that were made line by line, each time with a time and ids of its own."""
    chatter = Chatter(log.chance, messages)
    made = [chatter.block(_BLOCK) for _ in range(-(-size // _BLOCK))]
    while True:
        mark = b"%04x" % log.chance.randrange(1 << 16)
        yield log.chance.choice(made).replace(STAMP.encode(), log.stamp().encode()).replace(MARK.encode(), mark)


def main() -> None:
    """Write one log, as the arguments say."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("path", type=Path)
    options.add_argument("--size", type=float, default=1e9, help="bytes (default: %(default)g)")
    options.add_argument("--kind", choices=KINDS, default="sparse")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    write_log(chosen.path, int(chosen.size), chosen.kind, seed=chosen.seed)


if __name__ == "__main__":
    main()
