"""A driven clock and a programmed sink for the tests of forwarding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from messages import NOW, message
from report_samples import CARD, MATCHED

from lmdiag.config import SinkConfig
from lmdiag.errors import CardError
from lmdiag.forward.courier import Courier
from lmdiag.forward.message import DELIVERED, Message, Outcome
from lmdiag.forward.outbox import Outbox
from lmdiag.model import Card, Incident, Severity

OK = Outcome(DELIVERED)


class Clock:
    """Unix seconds that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class FakeSink:
    """Answers with `outcomes`, one after the other, then for ever with `default`; keeps what it was sent."""

    def __init__(self, *outcomes: Outcome, default: Outcome = OK, batch: int = 1) -> None:
        self.outcomes = list(outcomes)
        self.default = default
        self.batch = batch
        self.sent: list[list[Message]] = []
        """All attempts."""
        self.delivered: list[Message] = []
        self.defect: Exception | None = None

    def send(self, messages: Sequence[Message], now: float) -> Outcome:
        """Take an attempt."""
        self.sent.append(list(messages))
        if self.defect:
            raise self.defect
        outcome = self.outcomes.pop(0) if self.outcomes else self.default
        self.delivered += messages if outcome.result == DELIVERED else ()
        return outcome

    def preview(self, messages: Sequence[Message], now: float) -> str:
        """Nobody asks."""
        raise NotImplementedError


def cards(name: str) -> Card:
    """Return the sample card."""
    if name != CARD.id:
        raise CardError(f"there is no card {name!r}")
    return CARD


def incident(name: str = "one", state: str = "opened", severity: Severity = "critical") -> Incident:
    """Return an incident of this id."""
    return MATCHED._replace(id=name, fingerprint=f"print-{name}", state=state, severity=severity)


def report(name: str, state: str = "opened", number: int = 1) -> Message:
    """Return a message about the incident of this id."""
    return message()._replace(key=f"{name}-{state}-{number}", incident=incident(name, state), alert=f"alert-{name}")


def put(outbox: Outbox, *messages: Message, sink: str = "x", now: float = NOW) -> None:
    """Put messages into an outbox, as a forwarder does that nobody waits for."""
    with outbox.transaction():
        for one in messages:
            outbox.add(sink, one, now)


class Post:
    """A courier with its outbox, clock and sink."""

    def __init__(self, directory: Path, sink: FakeSink, **config: object) -> None:
        self.sink = sink
        self.clock = Clock()
        self.outbox = Outbox(str(directory))
        self.config = SinkConfig(**{"name": "x", "type": "webhook", "url": "http://x", **config})  # type: ignore[arg-type]
        self.courier = Courier(self.config, sink, self.outbox, cards, self.clock, steady=self.clock, chance=lambda: 0.5)

    def put(self, *messages: Message) -> None:
        """Put messages into the outbox."""
        put(self.outbox, *messages, now=self.clock.now)

    def run(self, until: float = NOW) -> float:
        """Let the courier work until a time; return when it wants to go on."""
        self.clock.now = max(self.clock.now, NOW)
        while (due := self.courier.step()) <= until:
            self.clock.now = max(self.clock.now, due)
        self.clock.now = max(self.clock.now, until)
        return due

    @property
    def keys(self) -> list[str]:
        """The keys of what was delivered."""
        return [one.key for one in self.sink.delivered]
