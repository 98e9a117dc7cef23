"""The daemon is killed at every single step between a log and its receiver: nothing is lost, overtaken, or told twice.

With real processes, tests/system/test_kill_forwarding.py does the same at random moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forwarding import FakeSink
from planted import LOG_SECRETS, assert_clean
from watched_node import Node

from lmdiag.config import SinkConfig
from lmdiag.forward.courier import Courier
from lmdiag.forward.message import Message, Outcome
from lmdiag.forward.outbox import Outbox
from lmdiag.match.library import Library, open_library
from lmdiag.watch.store import Store

LOGS = Path(__file__).parent / "logs"
SERDE = (LOGS / "mla-serde-start-failed.log").read_bytes()
USAGE = (LOGS / "usage-error.log").read_bytes()
HEALTHY = (Path(__file__).parent / "healthy" / "requests-032.log").read_bytes()
SECRETS = f"INFO 12-01 02:51:00 [x.py:1] hf_token={LOG_SECRETS[0]} api_key={LOG_SECRETS[2]} prompt: {LOG_SECRETS[3]!r}\n"
SCRIPT = (SECRETS.encode() + SERDE[:9000], SERDE[9000:], b"", HEALTHY, b"", USAGE, b"")
"""What is written to the log between two rounds."""


class KilledError(BaseException):
    """The process has ended."""


class Killer:
    """Counts the steps, and kills at one of them."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.steps = 0

    def step(self) -> None:
        """Between two steps the process may end."""
        self.steps += 1
        if self.steps == self.at:
            raise KilledError

    def around(self, action: Callable[..., Any]) -> Callable[..., Any]:
        """Kill before or after an action."""

        def stepped(*args: Any, **kwargs: Any) -> Any:
            self.step()
            done = action(*args, **kwargs)
            self.step()
            return done

        return stepped


class Receiver(FakeSink):
    """A receiver of whose answers the second one is lost on the way, and that may see the process end behind it."""

    def __init__(self, killer: Killer) -> None:
        super().__init__(Outcome("delivered"), Outcome("retry", "the answer was lost"))
        self.killer = killer
        self.reached: list[Message] = []

    def send(self, messages: Sequence[Message], now: float) -> Outcome:
        """Take the messages; what the sender learns of it is another thing."""
        self.killer.step()
        self.reached += messages
        self.killer.step()
        return super().send(messages, now)


@pytest.fixture(scope="module")
def library() -> Library:
    """The shipped pack."""
    return open_library()


def run(directory: Path, library: Library, killer: Killer, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """Let a server fail, come up, and fail of something else, under a daemon that is killed on the way."""
    receiver = Receiver(killer)
    sink = SinkConfig(name="x", type="webhook", url="http://x")
    node = Node(directory, library, sinks=(sink,))
    transaction = Outbox.transaction

    @contextmanager
    def stepped(self: Outbox) -> Iterator[None]:
        killer.step()
        with transaction(self):
            yield
            killer.step()
        killer.step()

    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "transaction", stepped)
        patched.setattr(Store, "save", killer.around(Store.save))
        written = 0
        while written < len(SCRIPT):
            try:
                courier = Courier(sink, receiver, Outbox(node.daemon.config.state), library.card, lambda: node.now, steady=lambda: node.now)
                while written < len(SCRIPT):
                    node.write(SCRIPT[written])
                    written += 1
                    for _ in range(8):
                        node.step(3.0)
                        while courier.step() <= node.now:
                            pass
            except KilledError:
                courier.close()
                node.kill()
                node.start()
    node.kill()
    return receiver


def test_killed_between_any_two_steps_it_delivers_everything_in_order(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Killer()
    expected = firsts(run(tmp_path / "whole", library, whole, monkeypatch).reached)
    assert expected == [
        ("opened", "lmcache-mla-naive-serde"),
        ("resolved", "lmcache-mla-naive-serde"),
        ("opened", "unknown-dtype"),
    ]
    for at in range(1, whole.steps + 1):
        directory = tmp_path / str(at)
        reached = run(directory, library, Killer(at), monkeypatch).reached
        assert firsts(reached) == expected, f"killed at step {at}"
        keys = {(one.incident.id, one.incident.state): one.key for one in reached}
        assert {one.key for one in reached} == set(keys.values()), f"killed at step {at}: one report under two keys"
        for file in (directory / "state").iterdir():
            assert_clean(file.read_bytes(), file.name)


def firsts(messages: Sequence[Message]) -> list[tuple[str, str | None]]:
    """(state, card) in the order in which each came first; a log's incidents have ids of their own."""
    ids = list(dict.fromkeys((one.incident.id, one.incident.state, one.incident.card) for one in messages))
    return [(state, card) for _, state, card in ids]
