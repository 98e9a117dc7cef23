"""What Alertmanager knows a report by (its labels), and what it says of it (its annotations).

Alertmanager takes two alerts for one if, and only if, all of their labels are equal. So a label holds nothing that may
change while an incident lasts; what the log says of the moment (model, scope, process, line) is in the annotations, which
the newest report replaces. There are exceptions: the severity, by which alerts are routed, may rise, and so may another
label change in time (the card, after cards were loaded anew; the name of the node): see `succession`.
"""

import re  # and not annotations from __future__: that name is wanted here
from collections.abc import Mapping

from lmdiag.diagnose.verdict import digest
from lmdiag.forward import texts
from lmdiag.forward.message import NO_CARD, Message
from lmdiag.model import Advice
from lmdiag.report.control import clip, one_line, shorten, visible

DESCRIPTION = 4000
"""Characters. Alertmanager has no limit of its own, but each receiver behind it has one."""
_ADVICE = 1000
_VALUE = 200
_URL = re.compile(
    r"https?://[a-zA-Z0-9.-]+(?::\d{1,5})?(?:[/?#](?:[\w.~:/?#@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?", re.ASCII
)
_MAX_URL = 2000


def labels(message: Message, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a report: its identity, the severity, and the `extra` ones, which the configuration has checked.

    None is empty, none of our own has more than about 200 characters, and the same failure without a card has the same
    `fingerprint` on each node.
    """
    incident = message.incident
    named = dict(extra) | {"alertname": "LmdiagIncident", "fingerprint": incident.fingerprint}
    named |= {"card": incident.card or NO_CARD, "source": incident.source}
    named |= {"severity": incident.severity, "instance": message.instance}
    return {name: label for name, value in named.items() if (label := _label(value))}


def annotations(message: Message) -> dict[str, str]:
    """Return what a person reads of a report; texts without a value are left out.

    A `summary`, the `description`, the id as `incident`, the first `advice`, the `model`, where it was `raised_at` (a
    URL) and a `runbook_url`.
    """
    incident, site = message.incident, message.incident.raised_at
    told = {
        "summary": texts.headline(message),
        "description": texts.plain(message, DESCRIPTION),
        "incident": incident.id,
        "advice": shorten(_advice(incident.advice[0]), _ADVICE) if incident.advice else "",
        "model": clip(incident.facts.model or "", _VALUE),
        "raised_at": usable_url(site.url if site else None),
        "runbook_url": runbook_url(message),
    }
    return {name: text for name, value in told.items() if (text := visible(value).strip())}


def runbook_url(message: Message) -> str:
    """Return the first of the card's references that is a URL, or ""."""
    references = message.card.references if message.card else ()
    return next((url for reference in references if (url := usable_url(reference))), "")


def generator_url(message: Message) -> str:
    """Return where the alert comes from: the line of source that raised it, else the `runbook_url`; "" for neither."""
    site = message.incident.raised_at
    return usable_url(site.url if site else None) or runbook_url(message)


def usable_url(url: str | None) -> str:
    """Return an http URL as it is, and "" for what may not be one: Alertmanager refuses an alert with a broken one."""
    return url if url and len(url) <= _MAX_URL and _URL.fullmatch(url) else ""


def succession(message: Message, known: Message | None) -> list[Message]:
    """Return what tells a receiver of alerts a report, after the `known` one of the same incident (None: there is none).

    An incident of which a label changes is another alert, and the one before would fire until its time is over: it is
    ended, once, as it was told. To end all that could be there, each time, is no way out. Alertmanager takes the end of
    an alert that it never knew for news where others of its group fire, and notifies.
    """
    if known is None or labels(known, {}) == labels(message, {}):
        return [message]
    end = known._replace(incident=known.incident._replace(state="resolved"))
    return [end] if message.incident.state == "resolved" else [end, message]


def _label(value: str) -> str:
    """Clean a value; one that was changed by that, or is too long, is told apart by a digest."""
    clean = one_line(value).strip()
    if len(clean) <= _VALUE and clean == value:
        return clean
    return f"{clip(clean, _VALUE)} #{digest(ascii(value))}".strip()


def _advice(advice: Advice) -> str:
    edits = [f"{edit.place}: {edit.before or 'not set'} → {edit.after or 'not set'}" for edit in advice.edits]
    return "\n".join([advice.text, *edits])
