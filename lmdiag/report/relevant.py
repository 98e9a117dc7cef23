"""What of the server's facts explains an incident: the arguments that its card or its message speaks of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.lazy_pattern import lazy
from lmdiag.report.control import shorten
from lmdiag.report.layout import Block, Span
from lmdiag.report.sections import counted, field

if TYPE_CHECKING:
    from lmdiag.model import Card, Facts, Incident

_NAME = lazy(r"--[a-z0-9][a-z0-9-]*|`[a-z0-9_]+`|[a-z0-9]+(?:_[a-z0-9]+)+")
_UNKNOWN_CAUSE_LIMIT = 12
_VALUE_LIMIT = 300
_MODEL = frozenset({"model", "model_tag"})  # shown with the server


def facts_blocks(incident: Incident, card: Card | None, *, verbose: bool) -> list[Block]:
    """List the captured fields, versions, model and arguments of an incident."""
    facts = incident.facts
    arguments = facts.arguments if verbose else relevant_arguments(incident, card)
    restarts = f"{facts.restarts} in this log" if facts.restarts else ""
    pairs = [*incident.fields, ("server", _server(facts)), ("restarts", restarts), *arguments]
    blocks = [field(name, Span(shorten(value, _VALUE_LIMIT), "log"), depth=1) for name, value in pairs if value]
    if left_out := len([name for name, _ in facts.arguments if verbose or name not in _MODEL]) - len(arguments):
        more = f"{counted(left_out, 'non-default argument')} not shown; --verbose shows all"
        blocks.append(field("", Span(more, "dim"), depth=1))
    return blocks


def relevant_arguments(incident: Incident, card: Card | None) -> list[tuple[str, str]]:
    """Choose the arguments that the card, the advice or the message names; without a card the first dozen after them.

    A one-word name ("port", "seed") counts only where it is written as a flag or in backticks.
    """
    named = _named(incident, card)
    arguments = [pair for pair in incident.facts.arguments if pair[0] not in _MODEL]
    chosen = [pair for pair in arguments if pair[0].lstrip("-").replace("-", "_") in named]
    if card is None:
        rest = [pair for pair in arguments if pair not in chosen]
        chosen += rest[: max(0, _UNKNOWN_CAUSE_LIMIT - len(chosen))]
    return chosen


def _named(incident: Incident, card: Card | None) -> set[str]:
    texts = [incident.root.message[:4000] if incident.root else ""]
    keys = [key for advice in incident.advice for key, _ in advice.change]
    if card:
        texts += [card.title, card.meaning, card.trigger, *(solution.text for solution in card.solutions)]
        keys += [key for solution in card.solutions for key, _ in solution.change]
    names = {match.strip("-`").replace("-", "_") for match in _NAME.findall("\n".join(texts))}
    names |= {key.lstrip("-").replace("-", "_") for key in keys}
    # LMCache is configured through vLLM's connector argument, so that one shows which connector ran and how.
    if any(key.startswith(("lmcache.", "LMCACHE_")) for key in keys):
        names.add("kv_transfer_config")
    return names


def _server(facts: Facts) -> str:
    """`vLLM 0.26.0, LMCache 0.3.9, MODEL (Architecture), on cuda`: what of it is known."""
    parts = [
        f"vLLM {facts.vllm_version}" if facts.vllm_version else "",
        f"LMCache {facts.lmcache_version}" if facts.lmcache_version else "",
        f"{facts.model or 'model unknown'} ({facts.architecture})" if facts.architecture else facts.model or "",
        f"on {facts.platform}" if facts.platform else "",
    ]
    return ", ".join(part for part in parts if part)
