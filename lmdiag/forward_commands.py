"""`lmdiag forward test`: sends a test incident to the configured sinks, and shows what was sent and answered."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TextIO

from lmdiag.errors import CardError, UsageError
from lmdiag.forward.credentials import CredentialError
from lmdiag.forward.forwarder import instance_name
from lmdiag.forward.message import DELIVERED, RETRY, Message, Outcome
from lmdiag.forward.sink import MEMORY, Sink, open_sink
from lmdiag.match.library import Library, open_library
from lmdiag.model import Card, Incident
from lmdiag.report.jsonl import dumps
from lmdiag.report.layout import Block, Span, lines_of
from lmdiag.report.sections import section
from lmdiag.report.text import print_blocks
from lmdiag.samples import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lmdiag.config import SinkConfig, WatchConfig

_CARD = "lmcache-mla-layerwise"
_SOURCE = "lmdiag forward test"
_NONE = """\
no sink is configured; write a section into {file}, such as
  [sinks.oncall]
  type = "slack"
  url-file = "/etc/lmdiag/slack-url"
and see with `lmdiag config check` whether it is right"""


class _Step(NamedTuple):
    """A message for a sink, and what became of it."""

    sink: SinkConfig
    message: Message
    request: str
    """What is sent, with secrets masked; "" if it cannot be made."""
    outcome: Outcome | None = None
    """None: it is only shown."""
    seconds: float = 0.0


class _Text:
    """Shows steps to a person."""

    def __init__(self, config: WatchConfig, out: TextIO) -> None:
        self._config, self._out = config, out

    def before(self, step: _Step) -> None:
        """Show what is about to be sent: the answer may be waited for."""
        sink = step.sink
        title = Block("title", (Span(sink.name, "strong"), Span(f" ({sink.type}), {step.message.incident.state}")))
        sent = [Block("code", lines_of(step.request, ""))] if step.request else []
        self._print([title, *section("What is sent", sent)])

    def after(self, step: _Step) -> None:
        """Show what came of it; what the receiver says is text like a log's."""
        if (outcome := step.outcome) is None:
            return
        blocks = [Block("text", _result(step, outcome))]
        if outcome.answer.strip():
            blocks.append(Block("log", lines_of(outcome.answer)))
        if step.sink.type == "alertmanager" and step.message.incident.state == "resolved" and _is_good(step):
            blocks.append(Block("text", (Span(_ALERTMANAGER, "dim"),)))
        self._print(section("What came of it", blocks))

    def _print(self, blocks: Sequence[Block]) -> None:
        print_blocks(blocks, file=self._out, color=self._config.color, width=self._config.width)
        print(file=self._out, flush=True)


_ALERTMANAGER = (
    "Alertmanager tells nobody of an alert that is over within group_wait, so the receivers behind it are not tested."
)


def _result(step: _Step, outcome: Outcome) -> tuple[Span, ...]:
    if outcome.result == DELIVERED:
        return Span("delivered", "strong"), Span(f" in {step.seconds:.2f} s")
    if not step.request:
        return Span("not sent", "error"), Span(": "), Span(outcome.detail, "log")
    return Span("not delivered", "error"), Span(f" after {step.seconds:.2f} s: "), Span(outcome.detail, "log")


class _Objects:
    """Shows each step as a JSON object."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def before(self, step: _Step) -> None:
        """Wait: it is one object."""

    def after(self, step: _Step) -> None:
        """Write the object; `result` and what follows are null if it was only shown."""
        outcome = step.outcome
        told = {
            "kind": "forward_test",
            "sink": step.sink.name,
            "type": step.sink.type,
            "state": step.message.incident.state,
            "key": step.message.key,
            "request": step.request or None,
            "result": outcome.result if outcome else None,
            "detail": outcome.detail if outcome else None,
            "answer": outcome.answer if outcome else None,
            "seconds": round(step.seconds, 3) if outcome else None,
        }
        print(dumps(told), file=self._out, flush=True)


def send_tests(
    config: WatchConfig,
    file: str | None,
    names: Sequence[str],
    style: str,
    out: TextIO,
    *,
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
) -> int:
    """Send a test to the sinks `names` (none: all), past the outbox; with `dry_run` only show what would be sent.

    `file` is the configuration's name, for those who have no sink yet. Returns 0, or 1 if a sink did not take its test.
    Raises UsageError if there is no such sink.
    """
    sinks = _chosen(config, file, names)
    incident, card = sample_incident(open_library(config.rules, config.disabled))
    show = _Objects(out) if style == "jsonl" else _Text(config, out)
    good = True
    for sink in sinks:
        opened = _opened(incident, card, instance_name(config), clock())
        good = _Tester(sink, open_sink(sink), show, clock, dry_run=dry_run).run(opened) and good
    return 0 if good else 1


def sample_incident(library: Library) -> tuple[Incident, Card]:
    """Return what the sample log of a card gives, and the card. Raises CardError if no card has one."""
    for name in (_CARD, *library.pack.ids):
        with suppress(CardError):  # a site has disabled it, or broken it
            card = library.card(name)
            for sample in card.samples:
                if found := [one for one in diagnose(sample.log, library) if one.card == card.id]:
                    return found[0]._replace(source=_SOURCE), card
    raise CardError("no card has a sample log to make a test from; are all of them disabled?")


def _opened(incident: Incident, card: Card, instance: str, now: float) -> Message:
    """Make the message: nothing that it is known by is that of a real incident, or of another test."""
    name = f"test-{secrets.token_hex(8)}"
    title = f"Test of lmdiag: {incident.title}"
    incident = incident._replace(id=name, fingerprint=name, state="opened", title=title)
    return Message(f"{name}-opened", incident, now, now, instance, alert=name, card=card)


def _resolved(opened: Message, now: float) -> Message:
    incident = opened.incident._replace(state="resolved")
    return opened._replace(key=f"{opened.alert}-resolved", incident=incident, at=now)


def _chosen(config: WatchConfig, file: str | None, names: Sequence[str]) -> list[SinkConfig]:
    known = {sink.name: sink for sink in config.sinks}
    if not known:
        raise UsageError(_NONE.format(file=file or "/etc/lmdiag/config.toml"))
    for name in names:
        if name not in known:
            from lmdiag.settings.values import did_you_mean

            hint = did_you_mean(name, known)
            raise UsageError(f"there is no sink {name!r}{hint or '; there are ' + ', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(known.values())


class _Tester:
    """Sends tests to one sink."""

    def __init__(
        self, config: SinkConfig, sink: Sink, show: _Text | _Objects, clock: Callable[[], float], *, dry_run: bool
    ) -> None:
        self._config, self._sink, self._show, self._clock, self._dry_run = config, sink, show, clock, dry_run

    def run(self, opened: Message) -> bool:
        """Send the test, and its end to whom it must be told; return whether all was well."""
        step = self._step(opened)
        good = _is_good(step)
        # It may have arrived although no answer says so, and nobody else would ever end it.
        arrived = step.request and (step.outcome is None or step.outcome.result in (DELIVERED, RETRY))
        if arrived and self._config.type in MEMORY:
            good = _is_good(self._step(_resolved(opened, self._clock()))) and good
        return good

    def _step(self, message: Message) -> _Step:
        now = self._clock()
        try:
            step = _Step(self._config, message, self._sink.preview([message], now))
        except CredentialError as error:
            step = _Step(self._config, message, "", Outcome(RETRY, str(error)))
        self._show.before(step)
        if step.outcome is None and not self._dry_run:
            began = time.monotonic()
            outcome = self._sink.send([message], now)
            step = step._replace(outcome=outcome, seconds=time.monotonic() - began)
        self._show.after(step)
        return step


def _is_good(step: _Step) -> bool:
    return step.outcome is None or step.outcome.result == DELIVERED
