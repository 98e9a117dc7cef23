"""`lmdiag explain` and `lmdiag cards`: what can be asked of the cards without a log."""

from __future__ import annotations

from typing import TextIO

from lmdiag.errors import UsageError
from lmdiag.match.library import Library
from lmdiag.model import Card, Incident, Line
from lmdiag.pipeline import Pipeline

_MAX_PASTED = 200_000
"""Characters of a paste that are looked at."""


def explain(
    message: str, library: Library, style: str, color: bool | None, width: int | None, out: TextIO, err: TextIO
) -> int:
    """Explain a pasted error: an exception's line, its bare message, a whole traceback, or the id of a card.

    Returns 0 if a card or at least an exception was recognised, 1 if nothing was. Raises UsageError for an empty text.
    """
    if not message.strip():
        raise UsageError("there is nothing to explain; give the error's message, or pipe it in: lmdiag explain -")
    if message in library.pack.ids:
        return show(message, library, style, color, width, out)
    incidents = diagnose_text(message, library)
    if not incidents:
        print("No card fits this message. `lmdiag cards new -` starts one from it.", file=err)
        return 1
    _print(incidents, library, style, color, width, out)
    return 0


def diagnose_text(message: str, library: Library) -> list[Incident]:
    """Return the incidents of a pasted text; a bare message is that of an exception if a card or the catalogue knows it."""
    message = message[:_MAX_PASTED]
    found = _pipeline(message, library)
    if any(item.card for item in found):
        return found
    if match := library.match(None, message, (), truncated=message.rstrip().endswith(("...", "…"))):
        types = library.card(match.card).rules[0].types or ("Exception",)
        return _pipeline(f"{types[0]}: {message.strip()}", library) or found
    if not found and (site := library.raise_site(None, message, None, {})) and site.confidence != "candidate":
        kind, _ = site.site.type_in(site.site.last)
        return _pipeline(f"{kind or 'Exception'}: {message.strip()}", library)
    return found


def _pipeline(text: str, library: Library) -> list[Incident]:
    pipeline = Pipeline("message", library)
    for number, line in enumerate(text.split("\n"), 1):
        pipeline.feed(Line("message", number, 0, line.rstrip("\r")))
    return [_without_outcome(incident, library) for incident in pipeline.close()]


def _without_outcome(incident: Incident, library: Library) -> Incident:
    """A pasted error does not show what became of the server: the severity is then what it deserves at worst."""
    severity = library.pack.headers[incident.card][1] if incident.card else "error"
    return incident._replace(outcome="unknown", severity=severity)


def _print(
    incidents: list[Incident], library: Library, style: str, color: bool | None, width: int | None, out: TextIO
) -> None:
    if style == "jsonl":
        from lmdiag.report.jsonl import dumps, incident_object

        out.writelines(dumps(incident_object(incident)) + "\n" for incident in incidents)
        return
    from lmdiag.report.incident import incident_blocks

    blocks = [
        block
        for incident in incidents
        for block in incident_blocks(incident, library.card(incident.card) if incident.card else None, verbose=True)
    ]
    if style == "markdown":
        from lmdiag.report.markdown import render_blocks

        out.write(render_blocks(blocks))
        return
    from lmdiag.report.text import print_blocks

    print_blocks(blocks, file=out, color=color, width=width)


def list_cards(library: Library, style: str, out: TextIO) -> int:
    """List the cards: one line each, or one JSON object each. `own` is the file of a site's own card."""
    for card_id in library.pack.ids:
        title, severity, scope = library.pack.headers[card_id]
        if style == "jsonl":
            from lmdiag.report.jsonl import dumps

            own = library.pack.own.get(card_id)
            print(dumps({"id": card_id, "title": title, "severity": severity, "scope": scope, "own": own}), file=out)
        elif style == "markdown":
            print(f"- `{card_id}` ({severity}, {scope}): {title}", file=out)
        else:
            own = f"  [{library.pack.own[card_id]}]" if card_id in library.pack.own else ""
            print(f"{card_id:40} {severity:9} {scope:8} {title}{own}", file=out)
    return 0


def show(card_id: str, library: Library, style: str, color: bool | None, width: int | None, out: TextIO) -> int:
    """Show one card whole; as `jsonl` its data as one JSON object. Raises UsageError if there is none of that id."""
    card = _card(card_id, library)
    card = card._replace(raised_at=library.raise_sites_of(card))
    if style == "jsonl":
        from lmdiag.report.card import card_object
        from lmdiag.report.jsonl import dumps

        print(dumps(card_object(card)), file=out)
    elif style == "markdown":
        from lmdiag.report.card import render_card_markdown

        out.write(render_card_markdown(card))
    else:
        from lmdiag.report.card import print_card

        print_card(card, file=out, color=color, width=width)
    return 0


def _card(card_id: str, library: Library) -> Card:
    if card_id not in library.pack.ids:
        from difflib import get_close_matches

        near = get_close_matches(card_id, library.pack.ids, n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `lmdiag cards list` names them all"
        raise UsageError(f"there is no card {card_id!r}{hint}")
    return library.card(card_id)


def new(message: str, library: Library, out: TextIO) -> int:
    """Print the skeleton of a card for a message, with what the catalogue knows of it; keys in it are replaced."""
    from lmdiag.diagnose.redact import redact
    from lmdiag.match.new import skeleton

    sites = library.sites
    out.write(skeleton(redact(message), sites[0] if sites else None))
    return 0
