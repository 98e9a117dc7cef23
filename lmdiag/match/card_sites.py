"""Where the catalogue and the cards meet: the messages of a card with their raise sites, and the template for a new one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lmdiag.match.catalog import Catalog
from lmdiag.match.catalog_format import HOLE, LINE_BREAK, OPAQUE
from lmdiag.match.known_sites import CatalogRow, KnownSite
from lmdiag.match.raise_sites import CERTAIN, RaiseSites
from lmdiag.match.templates import Template, parse_template
from lmdiag.model import Card, MatchRule, RaiseSite

_FILLING = "x"
_SHARE = 0.4
"""Of a rule's literal text that a row must have itself: less is a wrapper that fits many messages."""


def rows_of_rule(rule: MatchRule, sites: RaiseSites) -> list[CatalogRow]:
    """Return the messages of the catalogue that a rule of a card is about, by their number.

    They are those that the rule matches when their holes are filled, and those that the rule's own text fits: a rule may
    spell out what the code puts together ("Unsupported connector type: FooConnector").
    """
    template, catalog = Template(rule.message), sites.catalog
    first = template.literals[0]
    texts = ((number, key.replace(LINE_BREAK, " ")) for number, key in enumerate(catalog.texts))
    found = {
        number for number, key in texts if key.startswith(first) and template.match_folded(_filled(key)) is not None
    }
    text = "".join(_FILLING if part.hole else part.text for part in parse_template(rule.message))
    for match in sites.find_all(None, text, {}):
        if match.confidence == CERTAIN and _length(match.row) >= _SHARE * template.length:
            found.add(match.row.number)
    return [row for row in map(catalog.row, sorted(found)) if _types_agree(rule, row)]


def _filled(key: str) -> str:
    return key.replace(HOLE, _FILLING) if not key.startswith(OPAQUE) else ""


def _length(row: CatalogRow) -> int:
    return len(row.key.replace(HOLE, ""))


def _types_agree(rule: MatchRule, row: CatalogRow) -> bool:
    types = {change[1] for site in row.sites for change in site.changes}
    return not rule.types or "" in types or bool(types & set(rule.types))


def sites_of_card(card: Card, sites: RaiseSites) -> tuple[RaiseSite, ...]:
    """Return where a card's messages are raised over the releases: after the catalogue, and what the card itself adds."""
    rows = {row.number: row for rule in card.rules if rule.message for row in rows_of_rule(rule, sites)}
    return (*_merged(site for row in rows.values() for site in row.sites), *card.raised_at)


def _merged(found: Iterable[KnownSite]) -> Iterator[RaiseSite]:
    """One for each function, however often it raises one of the messages."""
    places: dict[tuple[str, str, str], list[KnownSite]] = {}
    for site in found:
        places.setdefault((site.project, site.file, site.function), []).append(site)
    for (project, file, function), same in sorted(places.items(), key=lambda item: _newest_first(item[1])):
        last = max(site.last for site in same)
        releases = same[0].releases
        until = "" if last == len(releases) - 1 else releases[last]
        yield RaiseSite(project, file, function, tuple(_lines(same)), until)


def _newest_first(same: list[KnownSite]) -> tuple[bool, int, int]:
    return same[0].project != "vllm", -max(site.last for site in same), -min(site.first for site in same)


def _lines(same: list[KnownSite]) -> Iterator[tuple[str, int]]:
    """Yield (first release with this line, line); of several lines in one release, the first."""
    before = None
    for release in range(min(site.first for site in same), max(site.last for site in same) + 1):
        lines = [line for site in same for line in site.lines_in(release)]
        if lines and min(lines) != before:
            before = min(lines)
            yield same[0].releases[release], before


def card_template(row: CatalogRow) -> str:
    """Return a row's message as a card's template: each hole with a name of its own."""
    literals = row.key.replace(LINE_BREAK, " ").replace("{", "{{").replace("}", "}}").split(HOLE)
    names: list[str] = []
    for raw in (*row.names, *("value" for _ in literals))[: len(literals) - 1]:
        name = re.sub(r"[^a-z0-9]+", "_", raw.lower()).strip("_0123456789") or "value"
        number = sum(re.sub(r"_\d+$", "", known) == name for known in names)
        names.append(f"{name}_{number + 1}" if number else name)
    return literals[0] + "".join(f"{{{name}}}{literal}" for name, literal in zip(names, literals[1:], strict=True))


def wordings(catalog: Catalog, row: CatalogRow) -> list[CatalogRow]:
    """Return a message with all that it was reworded from and to, the newest first."""
    numbers = [row.number]
    older: dict[int, list[int]] = {}
    for old, new in catalog.renamed.items():
        older.setdefault(new, []).append(old)
    while (newer := catalog.renamed.get(numbers[0])) is not None and newer not in numbers:
        numbers.insert(0, newer)
    for number in numbers:
        numbers += [old for old in sorted(older.get(number, ()), reverse=True) if old not in numbers]
    return [catalog.row(number) for number in numbers]
