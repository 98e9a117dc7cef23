"""`lmdiag outbox`: shows what waits to be delivered and what could not be, has it sent again, or drops it."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, TextIO

from lmdiag.errors import UsageError
from lmdiag.forward.outbox import DEAD, DELIVERED, MERGED, STATUSES, WAITING, Outbox
from lmdiag.forward.outbox_reader import OutboxReader, exists
from lmdiag.outbox_blocks import (
    delivery_blocks,
    delivery_object,
    item_block,
    report_blocks,
    title_block,
    whole_object,
)
from lmdiag.report.jsonl import dumps
from lmdiag.report.layout import Block, Span
from lmdiag.report.sections import bullet, counted, section
from lmdiag.report.text import print_blocks
from lmdiag.watch.status import is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from lmdiag.forward.rows import Delivery
    from lmdiag.model import Card

_SHOWN = 100
_OVERTAKEN = "a later report of its incident was delivered"
_SECTIONS = ((WAITING, "Waiting"), (DEAD, "Dead letters"), (DELIVERED, "Delivered"), (MERGED, "Part of a summary"))


class Chosen(NamedTuple):
    """Which deliveries are meant: exactly one of these says so."""

    names: tuple[str, ...] = ()
    """Numbers, keys and ids of incidents."""
    sink: str = ""
    """All of this sink that are waiting or dead."""
    dead: bool = False
    """All dead ones."""


def list_deliveries(
    directory: str,
    sink: str,
    style: str,
    color: bool | None,
    width: int | None,
    out: TextIO,
    err: TextIO,
    *,
    done: bool = False,
    clock: Callable[[], float] = time.time,
) -> int:
    """List what waits and what is dead, of one `sink` or ("") of all; `done`: also what is done and remembered.

    As text the first 100; as jsonl each as one JSON object. Returns 0. Raises UsageError if it cannot be read.
    """
    statuses = STATUSES if done else (WAITING, DEAD)
    if not exists(directory):
        print(_absent(directory), file=err if style == "jsonl" else out)
        return 0
    with closing(OutboxReader(directory)) as outbox:
        if style == "jsonl":
            out.writelines(dumps(delivery_object(one, one.message)) + "\n" for one in outbox.select(sink, statuses))
            return 0
        counts = {status: count for status, count in outbox.counts(sink).items() if status in statuses}
        blocks = [title_block(counts), *_sections(outbox, sink, counts, clock())]
    if counts.get(WAITING) and not is_running(directory):
        blocks.insert(1, Block("paragraph", (Span(_nobody(directory)),)))
    print_blocks(blocks, file=out, color=color, width=width)
    return 0


def show(
    directory: str,
    name: str,
    style: str,
    cards: Callable[[str], Card],
    color: bool | None,
    width: int | None,
    out: TextIO,
    *,
    clock: Callable[[], float] = time.time,
) -> int:
    """Show all deliveries of a number, a key or an incident's id, and the newest report that is kept of it.

    As jsonl each delivery is one JSON object, with its message. Returns 0. Raises UsageError if there is none.
    """
    if not exists(directory):
        raise UsageError(_absent(directory))
    with closing(OutboxReader(directory)) as outbox:
        found = outbox.find(name) or _not_found(name, directory)
    if style == "jsonl":
        out.writelines(dumps(whole_object(one, one.message)) + "\n" for one in found)
        return 0
    blocks = [block for one in found for block in delivery_blocks(one, clock())]
    messages = [message for one in found if (message := one.message)]
    print_blocks([*blocks, *report_blocks(messages, cards)], file=out, color=color, width=width)
    return 0


def retry(directory: str, chosen: Chosen, out: TextIO, *, clock: Callable[[], float] = time.time) -> int:
    """Have dead letters, and what waits for its next attempt, sent at once.

    Returns 0. Raises UsageError, and StateError if the outbox cannot be written.
    """

    def revive(outbox: Outbox, deliveries: Sequence[Delivery]) -> int:
        return outbox.revive(deliveries, clock())

    if _change(directory, chosen, revive, "to be sent again", out, rest=_OVERTAKEN) and not is_running(directory):
        print(_nobody(directory), file=out)
    return 0


def drop(directory: str, chosen: Chosen, out: TextIO) -> int:
    """Remove dead letters and what waits, for good.

    Returns 0. Raises UsageError, and StateError if the outbox cannot be written.
    """
    _change(directory, chosen, Outbox.drop, "dropped", out)
    return 0


def _change(
    directory: str,
    chosen: Chosen,
    change: Callable[[Outbox, Sequence[Delivery]], int],
    what: str,
    out: TextIO,
    *,
    rest: str = "",
) -> int:
    """Do it to what was chosen, say how much that was, and return that; `rest`: why it was not done to all.

    As root too: SQLite gives the helper files that it makes to the owner of the database, who would be kept out by
    root's (robustFchown in its os_unix.c). Nothing else is made, and a damaged outbox is left to the daemon.
    """
    if bool(chosen.names) + bool(chosen.sink) + chosen.dead != 1:
        ways = "NAME... (a number, a key or an incident's id), --sink NAME or --dead"
        raise UsageError(f"say in one way what is {what}: {ways}")
    if not exists(directory):
        if chosen.names:
            raise UsageError(_absent(directory))
        print(_absent(directory), file=out)
        return 0
    with closing(Outbox(directory, checked=False)) as outbox:
        found = [one for one in _find(outbox, chosen, directory) if one.status in (WAITING, DEAD)]
        count = change(outbox, found) if found else 0
    left = len(found) - count
    print(f"{what}: {counted(count, 'message')}" + (f"; {left:,} left out: {rest}" if left and rest else ""), file=out)
    return count


def _find(outbox: Outbox, chosen: Chosen, directory: str) -> Iterable[Delivery]:
    if not chosen.names:
        return outbox.select(chosen.sink or None, (DEAD,) if chosen.dead else (WAITING, DEAD))
    found = (one for name in chosen.names for one in outbox.find(name) or _not_found(name, directory))
    return {one.number: one for one in found}.values()


def _sections(outbox: OutboxReader, sink: str, counts: dict[str, int], now: float) -> Iterator[Block]:
    left = _SHOWN
    for status, title in _SECTIONS:
        if status in counts:
            items = [item_block(one, now) for one in outbox.select(sink, (status,), left)]
            yield from section(title, items)
            left -= len(items)
    if (more := sum(counts.values()) - _SHOWN) > 0:
        yield bullet(Span(f"and {more:,} more; all of them: lmdiag outbox list --format jsonl", "dim"))


def _not_found(name: str, directory: str) -> list[Delivery]:
    raise UsageError(
        f"there is no {name!r} in the outbox in {directory}, as a number, a key or an incident's id; "
        "see: lmdiag outbox list --all"
    )


def _absent(directory: str) -> str:
    return f"there is no outbox in {directory}: nothing was ever forwarded from there"


def _nobody(directory: str) -> str:
    return f"no `lmdiag watch` runs with {directory}: what waits is sent by the next one, or the next `lmdiag scan --forward`"
