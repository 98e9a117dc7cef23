"""Makes a card's solutions fit this server: values filled in, advice refused that the facts contradict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lmdiag.diagnose.cards import Cards
from lmdiag.diagnose.edits import UNSET, edits, is_done
from lmdiag.lazy_pattern import lazy
from lmdiag.match.conditions import facts_in, holds
from lmdiag.match.prose import filled
from lmdiag.match.settings import known_in
from lmdiag.match.sums import fill, names_in, placeholders
from lmdiag.model import Advice, Card, ClueSeen, Facts, Solution

_NO_VALUE = lazy(r"\[redacted\]|more characters\]|^-|^0(?:\.0*)?$|^(?:nan|inf)$")


def personal(solutions: Sequence[Solution], known: Mapping[str, str], facts: Facts, cards: Cards) -> tuple[Advice, ...]:
    """Return the solutions that apply, in their order, with this server's values in them.

    Left out is what `when` and `unless` rule out, what the log shows to be set already, and what names a setting that
    the release at hand does not know, after the table of settings of `cards`. If the last rules out all, the texts
    stay, and say so, without their changes.
    """
    versions = {"vllm": facts.vllm_version, "lmcache": facts.lmcache_version}
    given: list[Advice] = []
    unknown: list[Advice] = []
    for item in solutions:
        if (item.when and not holds(item.when, known)) or holds(item.unless, known):
            continue
        text, change = filled(item.text, known), _change(item, known)
        found = edits(change, facts.arguments)
        if not text or is_done(found):
            continue
        wanted = [key for key, value in change if value != UNSET]  # what is unknown may well be there, and must go
        missing = [key for key in wanted if known_in(cards.settings, key, versions) is False]
        if missing:
            unknown.append(Advice(f"{text} {_too_old(missing, facts)}", (), item.risk))
        else:
            given.append(Advice(text, change, item.risk, tuple(edit for edit in found if edit.before != edit.after)))
    return tuple(given or unknown)


def _change(item: Solution, known: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the change with its values; nothing if one of them is not in the log: half a change may do harm."""
    values = [(key, _value(value, known)) for key, value in item.change]
    whole = tuple((key, value) for key, value in values if value is not None)
    return whole if len(whole) == len(values) else ()


def _value(template: str, known: Mapping[str, str]) -> str | None:
    """Return a change's value; None if the log's part of it is cut off, redacted, or no amount: zero or less."""
    value = fill(template, known)
    if value is None or value == template:
        return value
    return None if _NO_VALUE.search(value) else value


def _too_old(missing: Sequence[str], facts: Facts) -> str:
    ours = [f"vLLM {facts.vllm_version}" if facts.vllm_version else "", f"LMCache {facts.lmcache_version}"]
    running = " and ".join(name for name in ours if name and not name.endswith("None"))
    return f"({running}, which runs here, does not know {' or '.join(f'`{key}`' for key in missing)}.)"


def reason(card: Card, known: Mapping[str, str]) -> str | None:
    """Return the text of the first case that the log shows, or None."""
    for case in card.cases:
        if holds(case.when, known):
            return filled(case.text, known)
    return None


def asked_for(card: Card, known: Mapping[str, str], clues: Sequence[ClueSeen]) -> tuple[ClueSeen, ...]:
    """Return the clues on which the reason, the advice or the card's texts rest."""
    return tuple(clue for clue in clues if clue.name in set(_used(card, known)))


def _used(card: Card, known: Mapping[str, str]) -> Iterator[str]:
    conditions = [next((case.when for case in card.cases if holds(case.when, known)), "")]
    conditions += [item.when for item in card.solutions if holds(item.when, known)]
    facts = [fact for condition in conditions if condition for fact in facts_in(condition)]
    texts = (card.meaning, card.trigger, card.verify, *(item.text for item in card.solutions))
    facts += [name for text in texts for hole in placeholders(text) for name in names_in(hole)]
    for fact in facts:
        group, _, name = fact.partition(".")
        if group == "log":
            yield name.partition(".")[0]
