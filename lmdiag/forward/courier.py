"""Delivers one sink's messages, in their order: when to try, when to try again, when to give up."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from lmdiag.errors import CardError
from lmdiag.forward.message import DELIVERED, GONE, REJECTED, RETRY, Message, Outcome
from lmdiag.forward.outbox import DEAD, MERGED, Alert, Count, Delivery
from lmdiag.forward.outbox import DELIVERED as DONE
from lmdiag.forward.sink import MEMORY
from lmdiag.forward.storms import LEAST, WINDOW, summary_of

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig
    from lmdiag.forward.outbox import Outbox
    from lmdiag.forward.sink import Sink
    from lmdiag.model import Card

GIVE_UP = 86400.0
"""Seconds for which a message is tried."""
_FIRST_PAUSE, _LAST_PAUSE = 1.0, 300.0
_LONGEST_WISH = 3600.0
_MANY = 500
"""Deliveries that are looked at at once."""
NEVER = float("inf")


class Courier:
    """One sink at work. `step` does one thing; it may wait for the receiver."""

    def __init__(
        self,
        config: SinkConfig,
        sink: Sink,
        outbox: Outbox,
        cards: Callable[[str], Card],
        clock: Callable[[], float],
        *,
        results: Counter[str] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`clock` gives unix seconds, `chance` numbers from 0 to 1; `results` is where messages are counted."""
        self.config = config
        self.cards = cards
        self.results: Counter[str] = Counter() if results is None else results
        """How many messages were answered how: keys of `message.RESULTS`."""
        self.problem = ""
        """Why the last attempt failed; "" after one that did not."""
        self._sink = sink
        self._outbox = outbox
        self._clock = clock
        self._chance = chance
        self._resend_at = 0.0

    def step(self) -> float:
        """Send what is due, one request at most; return when there is something to do again, in unix seconds."""
        now, name = self._clock(), self.config.name
        rows = self._outbox.waiting(name, _MANY)
        if why := self._outbox.disabled(name, target(self.config)):
            self.problem = why
            self._outbox.finish(rows, DEAD, now, why)
            return now if rows else NEVER
        if not rows:
            return self._resend(now)
        first = rows[0]
        if first.message is None:
            self._outbox.finish([first], DEAD, now, "another version of lmdiag wrote it, and this one cannot read it")
            return now
        if now < first.next_at <= now + _LONGEST_WISH + 1:  # a time beyond that is of a clock that was set back
            return first.next_at
        sent = self._outbox.delivered_since(name, now - WINDOW) if self.config.burst else []
        free = self.config.burst - len(sent)
        if self.config.burst and free <= 0:
            return sent[-self.config.burst] + WINDOW
        if free == 1 and len(loose := self._loose(rows)) >= LEAST:  # the last of a burst stands for all that wait
            self._outbox.merge(loose, summary_of([message for one in loose if (message := one.message)], now), now)
        else:
            self._deliver(rows)
        return self._clock()

    def count(self) -> Count:
        """Return how much there is for this sink."""
        return self._outbox.count(self.config.name)

    def close(self) -> None:
        """Close the outbox."""
        self._outbox.close()

    # -- storms ------------------------------------------------------------------------------------------------------

    def _loose(self, rows: Sequence[Delivery]) -> list[Delivery]:
        """Return what a summary may stand for: nothing of an incident that the service holds an alert for."""
        held = set()
        if self.config.type in MEMORY:
            held = {one.incident for one in self._outbox.alerts(self.config.name).values() if one.sent}
        return [one for one in rows if (message := one.message) and not message.members and one.incident not in held]

    # -- sending -----------------------------------------------------------------------------------------------------

    def _deliver(self, rows: Sequence[Delivery]) -> None:
        """Send the first of them, or as many as the sink takes at once."""
        alerts = self._outbox.alerts(self.config.name)
        if self._goes_on(rows[0].message, alerts):
            self._outbox.finish(rows[:1], MERGED, self._clock(), "the summary that it is part of is not over")
        else:
            ready = takewhile(lambda one: one.message and not self._goes_on(one.message, alerts), rows)
            self._send(list(islice(ready, self._sink.batch)), alerts)

    def _goes_on(self, message: Message | None, alerts: Mapping[str, Alert]) -> bool:
        """Whether this is the end of an incident of a storm that the service holds as one alert, and others are open."""
        if message is None or message.incident.state != "resolved" or self.config.type not in MEMORY:
            return False
        mine = alerts.get(message.incident.id)
        if mine is None:
            return False
        return any(
            one.alert == mine.alert and one.incident != mine.incident and not one.resolved for one in alerts.values()
        )

    def _send(self, batch: Sequence[Delivery], alerts: Mapping[str, Alert]) -> bool:
        """Send a batch, of one that is refused each half; return whether to go on with what follows."""
        outcome = self._attempt([self._prepared(one, alerts) for one in batch])
        if outcome.result == REJECTED and len(batch) > 1:
            half = len(batch) // 2
            return self._send(batch[:half], alerts) and self._send(batch[half:], alerts)
        now = self._clock()
        self.results[outcome.result] += len(batch)
        self.problem = outcome.detail
        if outcome.result == DELIVERED:
            self._outbox.finish(batch, DONE, now)
        elif outcome.result == REJECTED:
            self._outbox.finish(batch, DEAD, now, outcome.detail)
        elif outcome.result == RETRY and now - batch[0].created_at > GIVE_UP:
            self._outbox.finish(batch[:1], DEAD, now, f"given up after 24 hours: {outcome.detail}")
        elif outcome.result == GONE:
            self._outbox.disable(self.config.name, target(self.config), outcome.detail)
        else:
            self._outbox.postpone(batch[0], now + self._pause(batch[0], outcome.after), outcome.detail)
        return outcome.result in (DELIVERED, REJECTED)

    def _prepared(self, one: Delivery, alerts: Mapping[str, Alert]) -> Message:
        """Return what is sent: with the card, and under the alert that the service knows it by."""
        message = one.message
        assert message is not None
        known = alerts.get(message.incident.id)
        if known is not None and not message.members:
            message = message._replace(alert=known.alert)
        return message._replace(card=self._card(message.incident.card))

    def _card(self, name: str | None) -> Card | None:
        try:
            return self.cards(name) if name else None
        except CardError:
            return None

    def _attempt(self, messages: Sequence[Message]) -> Outcome:
        try:
            return self._sink.send(messages, self._clock())
        except Exception as error:  # noqa: BLE001 (the edge: a defect in one sink must cost no message)
            return Outcome(RETRY, defect(error))

    def _pause(self, one: Delivery, wish: float | None) -> float:
        """Return the seconds until the next attempt: what the receiver wants, or twice as long each time; never equal ones."""
        if wish is not None:
            return min(wish, _LONGEST_WISH) + self._chance()
        pause = min(_LAST_PAUSE, _FIRST_PAUSE * 2.0 ** min(one.attempts, 20))
        return pause * (0.8 + 0.4 * self._chance())

    # -- what is active ----------------------------------------------------------------------------------------------

    def _resend(self, now: float) -> float:
        """Send again what is active, as Alertmanager wants it: without that it takes an alert for over."""
        if self.config.type != "alertmanager":
            return NEVER
        active = [
            message._replace(alert=one.alert, card=self._card(message.incident.card))
            for one in self._outbox.alerts(self.config.name).values()
            if one.sent and not one.resolved and (message := one.message)
        ]
        if not active:
            return NEVER
        if now < self._resend_at:
            return self._resend_at
        for start in range(0, len(active), self._sink.batch):
            outcome = self._attempt(active[start : start + self._sink.batch])
            self.problem = outcome.detail
            if outcome.result == RETRY:
                break
        self._resend_at = self._clock() + self.config.resend
        return self._resend_at


def target(config: SinkConfig) -> str:
    """Return what tells one receiver from another: a sink that was disabled is not any more when this changes."""
    return f"{config.type} {config.url or config.url_file or config.routing_key_file or config.path}"


def defect(error: Exception) -> str:
    """Say that this should not have happened, and where; without the error's text, which may hold anything."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"a defect of lmdiag, please report it: {type(error).__name__} at {where.filename}:{where.lineno}"
