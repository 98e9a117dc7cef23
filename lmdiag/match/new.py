"""The skeleton of a card for a message: `lmdiag cards new`. What a person must write says TODO."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lmdiag.errors import UsageError
from lmdiag.lazy_pattern import lazy
from lmdiag.match.card_sites import card_template, wordings
from lmdiag.match.history import link
from lmdiag.match.known_sites import CatalogRow
from lmdiag.match.raise_sites import RaiseSites
from lmdiag.match.templates import Template, TemplateError, fold

_TYPE = lazy(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit)): *(?=\S)")
_VARIABLE = lazy(
    r"(?P<url>https?://[^\s'\")\]]+)"
    r"|(?<=\[)(?P<list>[^\[\]]+)(?=\])"
    r"|(?<![\w'])'(?P<value>[^']+)'(?!\w)"
    r'|(?<!\w)"(?P<text>[^"]+)"(?!\w)'
    r"|(?<![\w/])(?P<path>(?:~|\.{1,2})?/[\w.+@-]+(?:/[\w.+@-]+)*/?)"
    r"|(?<![\w.-])(?P<number>-?\d+(?:[.,]\d+)*)(?=\W|[KMGT]i?B\b|$)"
)
"""What differs from one server to the next. Numbers inside of names (fp16, head_dim64, cuda-12) belong to the name."""
_LABEL = lazy(r"\b([a-z][a-z0-9]*(?:_[a-z0-9]+)+)[ `=:(\[]{1,3}$")
_ESCAPES = lazy(r"[\x00-\x08\x0b-\x1f\x7f]")
_ID_WORDS = 5


def skeleton(message: str, sites: RaiseSites | None = None) -> str:
    """Return a card file for a message, to be filled in; a leading `ValueError: ` is taken as the type.

    If the catalogue knows the message, its templates of all releases are used, and the skeleton says where it is raised;
    otherwise what looks variable becomes a hole. Raises UsageError if the message has no word to recognise it by.
    """
    message = message.replace("\r\n", "\n").strip().encode("utf-8", "replace").decode()
    hit = _TYPE.match(message)
    text = message[hit.end() :] if hit else message
    known = _known(hit.group(1) if hit else None, text, sites) if sites else []
    templates = [card_template(row) for row in known] or [_template(text)]
    try:
        fields = next(filter(None, (Template(template).match(text) for template in templates)), ())
    except TemplateError as error:
        raise UsageError(f"no card can be made for {message!r}: {error}") from None
    types = _types(known) or ([hit.group(1)] if hit else [])
    return _SKELETON.format(
        id=_card_id(text),
        matches="\n\n".join(_match_table(template, types) for template in templates),
        sites="\n".join(_comments(known)) + "\n" if known else _OWN_SITES,
        log=_block(message if hit else f"{types[0] if types else 'ValueError'}: {message}"),
        fields="{ " + ", ".join(f"{name} = {_string(value)}" for name, value in fields) + " }" if fields else "{}",
    )


def _known(kind: str | None, text: str, sites: RaiseSites) -> list[CatalogRow]:
    """Return the wordings of a message that the catalogue knows for certain, the one that fits it first."""
    matches = sites.find_all(kind, text, {})
    if not matches or Template(card_template(matches[0].row)).match(text) is None:
        return []
    row = matches[0].row
    return [row, *(other for other in wordings(sites.catalog, row) if other.number != row.number)]


def _types(rows: Sequence[CatalogRow]) -> list[str]:
    """Return the classes of a message over the releases; a validator's error arrives as pydantic's."""
    found = {change[1] for row in rows for site in row.sites for change in site.changes} - {""}
    if any(site.validator for row in rows for site in row.sites):
        found.add("ValidationError")
    return sorted(found)


def _match_table(template: str, types: Sequence[str]) -> str:
    if not types:
        kind = '# type = "ValueError"          # without it, any type fits'
    elif len(types) == 1:
        kind = f"type = {_string(types[0])}"
    else:
        kind = f"type = [{', '.join(map(_string, types))}]"
    head = "[[match]]                       # one table for each wording over the versions"
    return f"{head}\n{kind}\nmessage = {_string(template)}"


def _comments(rows: Sequence[CatalogRow]) -> Iterator[str]:
    """Say where the catalogue knows the message from: what the author of the card must read."""
    yield "# Raised at, after the catalogue; read the check, its callers, and the releases in which it changed:"
    for row in rows:
        for site in row.sites:
            first, last = site.releases[site.first], site.releases[site.last]
            until = "" if first == last else f" to {last}"
            when = f"{first} and later" if site.last == len(site.releases) - 1 else f"{first}{until}"
            yield f"#   {row.id} {site.project} {when}: {site.function}"
            yield f"#     {link(site.project, last, site.file, site.lines_in(site.last)[0]) or site.file}"


def _template(text: str) -> str:
    """Put named holes where the text varies, and double its own braces."""
    text, parts, end, names = fold(text), [""], 0, set[str]()
    for hit in _VARIABLE.finditer(text):
        start, stop = hit.span(hit.lastgroup or 0)
        before = text[end:start]
        if before or not names:  # else it joins the hole that ends here
            name = _hole_name(hit.lastgroup or "value", before, names)
            parts += [_escape(before), f"{{{name}}}"]
        end = stop
    return "".join([*parts, _escape(text[end:])])


def _hole_name(kind: str, before: str, names: set[str]) -> str:
    """Name it after the word in front, as in `max_model_len (4096)`, or after what it is."""
    label = _LABEL.search(before)
    wanted = name = label.group(1) if label else kind
    number = 1
    while name in names:
        number += 1
        name = f"{wanted}_{number}"
    names.add(name)
    return name


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _card_id(text: str) -> str:
    """Return the first words of the text in kebab-case, without what varies."""
    words = re.findall(r"[a-z][a-z0-9]*", _VARIABLE.sub(" ", fold(text)).lower().replace("'", ""))
    return "-".join(words[:_ID_WORDS]) or "new-card"


def _string(text: str) -> str:
    """Return a TOML basic string: JSON's, which leaves out the escape of DEL."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _block(text: str) -> str:
    """Return a literal block where the text allows it, since that can be edited by hand."""
    return _string(text) if "'''" in text or text.endswith("'") or _ESCAPES.search(text) else f"'''\n{text}\n'''"


_OWN_SITES = """\
# [[raised_at]]                 # where it is raised: first version with this line -> the line of the raise
# project = "vllm"
# file = "vllm/config/model.py"
# function = "function"
# lines = { "0.26.0" = 1 }
"""

_SKELETON = """\
# Save as rules/<area>/{id}.toml: the file's name is the card's id. Fill in what says TODO, then run
#   lmdiag cards check rules
title = "TODO: the error in an operator's words, at most 80 characters"
severity = "error"              # at worst: critical (the server cannot start or has died), error, warning, info
scope = "startup"               # startup, runtime, request
tags = []

{matches}
# Names in braces are holes: rename them, put back what is always the same, double a literal brace.
# raised_in = ["file.py:function"]       # only if other code raises the same words

{sites}
[card]
meaning = "TODO: what the check is and why it exists"
trigger = "TODO: the configuration that fires it"
situations = ["TODO: how people get there"]
related = []
references = []

[[card.solutions]]              # the one to try first stands first
text = "TODO: what to change; flags, values, versions"
# change = {{ "--flag" = "value" }}        # values may use {{field}} and sums over fields
risk = "safe"                   # safe, disruptive
# unless = "vllm_version >= 0.26.0"      # a fact that makes this advice wrong

[card.example]
before = "TODO: the configuration that fails"
after = "TODO: the same, repaired"

[card.verify]
text = "TODO: a check that changes nothing and shows that the fix holds"

[[sample]]                      # better: the lines of a real log, with its traceback
log = {log}
fields = {fields}

[[near_miss]]                   # the closest log that must not match
log = "TODO: a neighbour's error, or a healthy line with the same words"
"""
