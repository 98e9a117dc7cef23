"""Delivers one sink's messages, in their order: when to try, when to try again, when to give up."""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING

from lmdiag.forward.credentials import CredentialError, credential
from lmdiag.forward.message import DELIVERED, GONE, MAX_AFTER, REJECTED, RETRY, Message, Outcome, card_of
from lmdiag.forward.outbox import DEAD, MERGED, WAITING
from lmdiag.forward.outbox import DELIVERED as DONE
from lmdiag.forward.sink import MEMORY
from lmdiag.forward.storms import LEAST, WINDOW, summary_of

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig
    from lmdiag.forward.outbox import Outbox
    from lmdiag.forward.rows import Alert, Delivery
    from lmdiag.forward.sink import Sink
    from lmdiag.model import Card

GIVE_UP = 86400.0
"""Seconds for which a message is tried."""
_FIRST_PAUSE, _LAST_PAUSE = 1.0, 300.0
_MANY = 500
"""Deliveries that are looked at at once, and room for messages where there is no limit."""
NEVER = float("inf")


class Courier:
    """One sink at work. `step` does one thing; it may wait for the receiver."""

    def __init__(
        self,
        config: SinkConfig,
        sink: Sink,
        outbox: Outbox,
        cards: Callable[[str], Card],
        clock: Callable[[], float] = time.time,
        *,
        steady: Callable[[], float] = time.monotonic,
        results: Counter[str] | None = None,
        resends: bool = True,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`clock` gives unix seconds, `steady` seconds that nobody sets, `chance` numbers from 0 to 1.

        `results` is where messages are counted. `resends`: keep alerts alive, as only a daemon can that ends them too.
        """
        self.config = config
        self.cards = cards
        self.results: Counter[str] = Counter() if results is None else results
        """How many messages were answered how: keys of `message.RESULTS`."""
        self.problem = ""
        """Why the last attempt failed; "" after one that did not."""
        self.outbox = outbox
        self._sink = sink
        self._clock = clock
        self._steady = steady
        self._began = steady()
        self._chance = chance
        self._resends = resends and config.type == "alertmanager"
        self._resend_at = 0.0
        self._notes: list[Callable[[], None]] = []  # what is to be written down before anything else is done

    def step(self) -> float:
        """Send what is due, one request at most; return when there is something to do again, in unix seconds.

        Raises StateError if the outbox cannot be read or written; what was delivered is not sent again for that.
        """
        self._write_notes()
        now = self._clock()
        rows = self.outbox.waiting(self.config.name, self._sink.batch)
        if why := self._disabled():
            return self._refuse(why, now)
        if not rows:
            return self._resend(now)
        if rows[0].message is None:
            self._finish(rows[:1], DEAD, "another version of lmdiag wrote it, and this one cannot read it", tried=False)
            return now
        if now < rows[0].next_at <= now + MAX_AFTER + 1:  # a time beyond that is of a clock that was set back
            return rows[0].next_at
        free, free_at = self._room(now)
        if not free:
            return free_at
        if free == 1 and self._merge_storm(now):  # the last of a burst stands for all that wait
            return now
        self._deliver(rows)
        return self._clock()

    def close(self) -> None:
        """Close the outbox."""
        self.outbox.close()

    # -- what is written down ----------------------------------------------------------------------------------------

    def _note(self, note: Callable[[], None]) -> None:
        self._notes.append(note)
        self._write_notes()

    def _write_notes(self) -> None:
        while self._notes:
            self._notes[0]()
            del self._notes[0]

    def _finish(self, rows: Sequence[Delivery], status: str, detail: str = "", *, tried: bool = True) -> None:
        now = self._clock()
        self._note(lambda: self.outbox.finish(rows, status, now, detail, tried=tried))

    # -- a receiver that wants nothing more --------------------------------------------------------------------------

    def _disabled(self) -> str:
        found = self.outbox.disabled(self.config.name)
        return found[1] if found and found[0] == target(self.config) else ""

    def _refuse(self, why: str, now: float) -> float:
        self.problem = why
        rows = self.outbox.waiting(self.config.name, _MANY)
        self.results[GONE] += len(rows)
        self._finish(rows, DEAD, why, tried=False)
        return now if rows else NEVER

    # -- storms ------------------------------------------------------------------------------------------------------

    def _room(self, now: float) -> tuple[int, float]:
        """Return how many messages of a burst may still go, or 0 and when the next one may."""
        burst = self.config.burst
        if not burst:
            return _MANY, now
        sent = self.outbox.delivered_between(self.config.name, now - WINDOW, now)
        return (burst - len(sent), now) if len(sent) < burst else (0, sent[-burst] + WINDOW)

    def _merge_storm(self, now: float) -> bool:
        """Put a summary in the place of all that may go into one, if that is much; return whether it was."""
        loose = self._loose()
        if len(loose) < LEAST:
            return False
        messages = [message for one in loose if (message := one.message)]
        self.outbox.merge(loose, summary_of(messages, now), now)
        return True

    def _loose(self) -> list[Delivery]:
        """Return what a summary may stand for: nothing of an incident that the service holds an alert for."""
        if self.outbox.count(self.config.name).waiting < LEAST:
            return []
        held: set[str] = set()
        if self.config.type in MEMORY:
            held = {one.incident for one in self.outbox.alerts(self.config.name).values() if one.sent}
        rows = self.outbox.select(self.config.name, [WAITING])
        return [one for one in rows if (message := one.message) and not message.members and one.incident not in held]

    # -- sending -----------------------------------------------------------------------------------------------------

    def _deliver(self, rows: Sequence[Delivery]) -> None:
        """Send them, as far as they can go together."""
        if self._goes_on(rows[0]):
            self._finish(rows[:1], MERGED, "the summary that it is part of is not over", tried=False)
        else:
            self._send(list(takewhile(lambda one: one.message and not self._goes_on(one), rows)))

    def _goes_on(self, one: Delivery) -> bool:
        """Whether this is the end of an incident that the service knows by an alert of a storm which others are part of."""
        message = one.message
        if message is None or message.incident.state != "resolved" or self.config.type not in MEMORY:
            return False
        known = self._known(message)
        return known is not None and self.outbox.is_shared(known)

    def _send(self, batch: Sequence[Delivery]) -> bool:
        """Send a batch, of one that is refused each half; return whether to go on with what follows."""
        outcome = self._attempt([self._prepared(one) for one in batch])
        if outcome.result == REJECTED and len(batch) > 1:
            half = len(batch) // 2
            return self._send(batch[:half]) and self._send(batch[half:])
        self.results[outcome.result] += len(batch)
        if outcome.result == DELIVERED:
            self._finish(batch, DONE)
        elif outcome.result == REJECTED:
            self._finish(batch, DEAD, outcome.detail)
        elif outcome.result == GONE:
            self._disable(outcome.detail)
        elif self._tried_for(batch[0]) > GIVE_UP:
            self._finish(batch[:1], DEAD, f"given up after 24 hours: {outcome.detail}")
        else:
            next_at = self._clock() + self._pause(batch[0], outcome.after)
            self._note(lambda: self.outbox.postpone(batch[0], next_at, outcome.detail))
        return outcome.result in (DELIVERED, REJECTED)

    def _tried_for(self, one: Delivery) -> float:
        """Return for how many seconds it can have been tried: not while the node was off, or its clock jumped."""
        return min(self._clock() - one.created_at, self._steady() - self._began)

    def _disable(self, why: str) -> None:
        self._note(lambda: self.outbox.disable(self.config.name, target(self.config), why))

    def _known(self, message: Message) -> Alert | None:
        return self.outbox.alert(self.config.name, message.incident.id)

    def _prepared(self, one: Delivery) -> Message:
        """Return what is sent: with the card, and under the alert that the service knows it by."""
        message = one.message
        assert message is not None
        if not message.members and (known := self._known(message)) is not None:
            message = message._replace(alert=known.alert)
        return message._replace(card=card_of(message.incident.card, self.cards))

    def _attempt(self, messages: Sequence[Message]) -> Outcome:
        try:
            outcome = self._sink.send(messages, self._clock())
        except Exception as error:  # noqa: BLE001 (the edge: a defect in one sink must cost no message)
            outcome = Outcome(RETRY, defect(error))
        self.problem = outcome.detail
        return outcome

    def _pause(self, one: Delivery, wish: float | None) -> float:
        """Return the seconds until the next attempt: twice as many each time, or as the receiver wishes; never equal ones."""
        pause = min(_LAST_PAUSE, _FIRST_PAUSE * 2.0 ** min(one.attempts, 20)) * (0.8 + 0.4 * self._chance())
        if wish is None:
            return pause
        return max(wish + self._chance(), min(pause, _LAST_PAUSE / 10))  # "at once" is no way to wait

    # -- what is active ----------------------------------------------------------------------------------------------

    def _resend(self, now: float) -> float:
        """Send again what is active, as Alertmanager wants it: without that it takes an alert for over."""
        if not self._resends:
            return NEVER
        active = [
            message._replace(alert=one.alert, card=card_of(message.incident.card, self.cards))
            for one in self.outbox.alerts(self.config.name).values()
            if one.sent and not one.resolved and (message := one.message)
        ]
        if not active:
            return NEVER
        if now < self._resend_at <= now + self.config.resend:
            return self._resend_at
        for start in range(0, len(active), self._sink.batch):
            if not self._send_again(active[start : start + self._sink.batch]):
                break
        self._resend_at = self._clock() + self.config.resend
        return self._resend_at

    def _send_again(self, batch: Sequence[Message]) -> bool:
        """Send alerts, of a batch that is refused each half; return whether to go on with what follows."""
        outcome = self._attempt(batch)
        if outcome.result == REJECTED and len(batch) > 1:
            half = len(batch) // 2
            return self._send_again(batch[:half]) and self._send_again(batch[half:])
        if outcome.result == GONE:
            self._disable(outcome.detail)
        return outcome.result in (DELIVERED, REJECTED)


def target(config: SinkConfig) -> str:
    """Return what tells one receiver from another: a sink that was disabled is not any more when this changes."""
    secrets = (_content(config.url_file, "url-file"), _content(config.routing_key_file, "routing-key-file"))
    return sha256("\0".join((config.type, config.url, *secrets)).encode("utf-8", "surrogateescape")).hexdigest()


def _content(name: str, key: str) -> str:
    try:
        return credential(name, key) if name else ""
    except CredentialError:
        return ""


def defect(error: Exception) -> str:
    """Say that this should not have happened, and where; without the error's text, which may hold anything."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"a defect of lmdiag, please report it: {type(error).__name__} at {where.filename}:{where.lineno}"
