"""Finds where an exception was raised: the message against every template of the catalogue, then frames and version.

The order of the ranks was measured on messages made from all templates: the text alone names the right one in 99.8 % of
the cases, frames and version settle the rest. A frame that disagrees does not veto a long text: pydantic hides frames, and
processes interleave. See ARCHITECTURE.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lmdiag.lazy_pattern import lazy
from lmdiag.match.catalog import Catalog
from lmdiag.match.catalog_format import HOLE, LINE_BREAK, OPAQUE
from lmdiag.match.catalog_words import WORD
from lmdiag.match.known_sites import CatalogRow, KnownSite
from lmdiag.match.packages import Located
from lmdiag.match.templates import fold

CERTAIN, PROBABLE, CANDIDATE = "certain", "probable", "candidate"
_SURE_LENGTH, _SURE_HEADLESS, _SURE_WORDS = 25, 40, 3
"""Literal characters and words from which a whole message names its template without a frame: of the messages of five
other packages 0.2 % met one by chance."""
_TELLING_LENGTH = 20
_MAX_WORDS = 20_000
"""Of the messages that were looked up: each is remembered with the rows that are filed under it."""
_MAX_TEXT, _MAX_TAIL = 4000, 1000
_WORDS = lazy(r"[^\W\d_]{3,}")
_WHOLE, _FIRST_LINE, _EMBEDDED, _CUT = 3, 2, 1, 0
Releases = Mapping[str, int | None]
"""Project -> the release that the log names, as a number; None: unknown, or a build of no release."""


class Hit(NamedTuple):
    """A row whose text fits a message, and how."""

    number: int
    how: int
    """_WHOLE … _CUT: the larger, the surer."""
    length: int
    """Literal characters."""
    holes: int
    words: int
    """Literal words."""
    unmistakable: bool
    """Another package hardly says the same: the text is long, begins with words of its own, and is not all holes."""


class SiteMatch(NamedTuple):
    """The raise site of an exception."""

    catalog: Catalog
    row: CatalogRow
    site: KnownSite
    release: int | None
    """The release that the log names, as a number into `site.releases`; None: unknown or no release."""
    confidence: str
    rank: tuple[int, ...]


class RaiseSites:
    """Looks messages up in one catalogue."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._filed: dict[str, list[int]] = {}
        self._known: dict[int, tuple[list[str], Hit]] = {}
        """Row -> its literals, and the hit if a message fits them as a whole."""
        self._sorted: list[tuple[str, int]] | None = None

    def find(
        self,
        type: str | None,
        message: str,
        frame: Located | None,
        versions: Mapping[str, str | None],
        *,
        truncated: bool = False,
    ) -> SiteMatch | None:
        """Return the site that fits an exception best, or None.

        `frame` is the last frame of its traceback, if it is one of the catalogue's projects; `versions` has the version
        of each project that the log names.
        """
        hits = self.hits(message, truncated=truncated)
        name = _name(type)
        releases = {project: self.catalog.release_of(project, version) for project, version in versions.items()}
        best: SiteMatch | None = None
        for hit in hits:
            best = self._better(best, hit, name, frame, releases)
        if frame and (best is None or (best.confidence == CANDIDATE and not agrees(best, frame))):
            return self._from_frame(name, fold(_bounded(message)), frame, releases) or best
        return best

    def find_all(self, type: str | None, message: str, versions: Mapping[str, str | None]) -> list[SiteMatch]:
        """Return the best site of each row that fits a message, which may be cut off, the best first."""
        releases = {project: self.catalog.release_of(project, version) for project, version in versions.items()}
        found = [self._better(None, hit, _name(type), None, releases) for hit in self.hits(message, truncated=True)]
        return sorted(found, key=lambda item: item.rank, reverse=True)

    # -- text --------------------------------------------------------------------------------------------------------

    def hits(self, message: str, *, truncated: bool = False) -> list[Hit]:
        """Return the rows that fit a message: as a whole, else by its first line, inside of it, or cut off."""
        message = _bounded(message)
        text = fold(message)
        if not text:
            return []
        numbers = self._candidates(text)
        found = self._whole(numbers, text)
        if not found:
            found = self._first_line(numbers, fold(message.lstrip().partition("\n")[0]))
        if (
            not found
        ):  # a value was empty, and folding took a blank at its side: `failed: {error}`, `model {name} not found`
            found = self._whole(numbers, text, slack=1) or self._whole(numbers, f"{text} ", slack=1)
        if not found:
            found = [hit for number in numbers if (hit := self._inside(number, text))]
            if truncated or text.endswith(("...", "…")):
                cut = list(self._cut(text.rstrip(".… ")))
                found = max(found, cut, key=lambda hits: max((hit.length for hit in hits), default=0))
        return found

    def _candidates(self, text: str) -> list[int]:
        filed, found = self._filed, list[int]()
        for word in {*map(str.lower, WORD.findall(text)), ""}:
            if word not in filed:
                if len(filed) >= _MAX_WORDS:
                    filed.clear()
                filed[word] = self.catalog.filed_under(word)
            found += filed[word]
        return found

    def _pieces(self, number: int) -> tuple[list[str], Hit]:
        if number not in self._known:
            literals = self.catalog.texts[number].replace(LINE_BREAK, " ").split(HOLE)
            self._known[number] = literals, _hit(number, _WHOLE, literals)
        return self._known[number]

    def _whole(self, numbers: Sequence[int], text: str, slack: int = 0) -> list[Hit]:
        """The inner loop of every look-up: most candidates are refused by their first literal."""
        known, found = self._known, []
        for number in numbers:
            literals, hit = known[number] if number in known else self._pieces(number)
            if text.startswith(literals[0]) and fits(literals, text, slack):
                found.append(hit)
        return found

    def _first_line(self, numbers: Sequence[int], line: str) -> list[Hit]:
        """Find messages of several lines of which one side has the first only."""
        found = []
        for number in numbers:
            literals = self.catalog.texts[number].partition(LINE_BREAK)[0].split(HOLE)
            if line and fits(literals, line) and (hit := _hit(number, _FIRST_LINE, literals)).words:
                found.append(hit)
        return found

    def _inside(self, number: int, text: str) -> Hit | None:
        literals, hit = self._pieces(number)
        start = 0
        for literal in literals:
            start = text.find(literal, start)
            if start < 0:
                return None
            start += len(literal)
        hit = hit._replace(how=_EMBEDDED)
        return hit if hit.length >= _TELLING_LENGTH and hit.words >= _SURE_WORDS else None

    def _cut(self, text: str) -> Iterator[Hit]:
        """Yield the rows that a message, broken off somewhere, is the beginning of: those that share the most of it."""
        if self._sorted is None:
            texts = enumerate(self.catalog.texts)
            self._sorted = sorted((key.replace(LINE_BREAK, " "), number) for number, key in texts)
        found = [hit for number in self._with_head(text) if (hit := _cut_hit(number, self._pieces(number)[0], text))]
        most = max((hit.length for hit in found), default=0)
        yield from (hit for hit in found if hit.length == most)

    def _with_head(self, text: str) -> Iterator[int]:
        assert self._sorted is not None
        head = text[: _TELLING_LENGTH // 2]
        index = bisect_left(self._sorted, (head, 0))
        while index < len(self._sorted) and self._sorted[index][0].startswith(head):
            yield self._sorted[index][1]
            index += 1

    # -- site --------------------------------------------------------------------------------------------------------

    def _better(
        self, best: SiteMatch | None, hit: Hit, type: str | None, frame: Located | None, releases: Releases
    ) -> SiteMatch:
        """Return the best of the sites of a hit, or what was found before if that is better."""
        row = self.catalog.row(hit.number)
        for site in row.sites:
            release = releases.get(site.project)
            agrees = _agreement(site, frame, release) if frame else 0
            alive = release is not None and site.is_in(release)
            typed = type is not None and type in [change[1] for change in site.changes]
            rank = (hit.how, agrees, hit.length, -hit.holes, alive, typed, site.project == "vllm", site.last)
            if best is None or rank > best.rank:
                best = SiteMatch(self.catalog, row, site, release, _confidence(hit, agrees), rank)
        assert best is not None, "a row has a site"
        return best

    def _from_frame(self, type: str | None, text: str, frame: Located, releases: Releases) -> SiteMatch | None:
        """Return the site of a frame for a message whose words do not tell it.

        One without words of its own, such as `raise ValueError(str(error))`; or one on exactly this line of the version
        that ran, if the message begins like it: the log broke the message off.
        """
        best: SiteMatch | None = None
        for row in self.catalog.rows_of_file(frame.path):
            opaque = row.key.startswith(OPAQUE)
            if not opaque and not _begins(self._pieces(row.number)[0][0], text):
                continue
            for site in row.sites:
                release = releases.get(site.project)
                agrees = _agreement(site, frame, release)
                if agrees < (_FUNCTION if opaque else _LINE) or type not in [change[1] for change in site.changes]:
                    continue
                rank = (_CUT, agrees, not opaque, 0, release is not None and site.is_in(release), 1, 1, site.last)
                if best is None or rank > best.rank:
                    confidence = PROBABLE if not opaque else CERTAIN if agrees > _FUNCTION else CANDIDATE
                    best = SiteMatch(self.catalog, row, site, release, confidence, rank)
        return best


_FILE, _FUNCTION, _LINE = 1, 2, 3


def agrees(match: SiteMatch, frame: Located) -> bool:
    """Whether a frame is in the function of the site that was found."""
    return _agreement(match.site, frame, None) >= _FUNCTION


def _agreement(site: KnownSite, frame: Located, release: int | None) -> int:
    """Return how far a frame agrees with a site: not at all, in the file, in the function, in the line too."""
    if site.file != frame.path:
        return 0
    if site.function != frame.function:
        return _FILE
    if release is None:
        return _FUNCTION
    lines = site.lines_in(release)
    # Python shows an assertion's test or its keyword, after its version; they are at most a line apart.
    return _LINE if frame.line in lines or (site.how == "assert" and frame.line + 1 in lines) else _FUNCTION


def _confidence(hit: Hit, agrees: int) -> str:
    if hit.how >= _FIRST_LINE and (hit.unmistakable or agrees >= _FUNCTION):
        return CERTAIN
    return PROBABLE if hit.length >= _TELLING_LENGTH and hit.words >= _SURE_WORDS else CANDIDATE


def _name(type: str | None) -> str | None:
    return type.rsplit(".", 1)[-1] if type else None


def _bounded(message: str) -> str:
    """Take out the middle of a message that is too long: that is inside of a value."""
    return (
        message
        if len(message) <= _MAX_TEXT
        else f"{message[:-_MAX_TAIL][: _MAX_TEXT - _MAX_TAIL]} {message[-_MAX_TAIL:]}"
    )


def fits(literals: list[str], text: str, slack: int = 0) -> bool:
    """Whether a text is the literals with anything between: found leftmost, so nothing is tried twice.

    With `slack` 1 two literals may share a blank: nothing stood between them, and the text is folded.
    """
    if not text.startswith(literals[0]) or not text.endswith(literals[-1]):
        return False
    start, end = len(literals[0]), len(text) - len(literals[-1])
    if len(literals) == 1:
        return end == 0
    for literal in literals[1:-1]:
        start = text.find(literal, max(start - slack, 0) if literal.startswith(" ") else start, end)
        if start < 0:
            return False
        start += len(literal)
    return start <= end + (slack if literals[-1].startswith(" ") else 0)


def _begins(literal: str, text: str) -> bool:
    """Whether a text that may be cut off begins like a literal."""
    return bool(literal) and bool(text) and (text.startswith(literal) or literal.startswith(text))


def _hit(number: int, how: int, literals: list[str]) -> Hit:
    joined = " ".join(literals)
    length, words = len(joined) - len(literals) + 1, len(_WORDS.findall(joined))
    enough = _SURE_LENGTH if literals[0] else _SURE_HEADLESS
    unmistakable = length >= enough and words >= _SURE_WORDS and max(map(len, literals)) >= _TELLING_LENGTH
    return Hit(number, how, length, len(literals) - 1, words, unmistakable)


def _cut_hit(number: int, literals: list[str], text: str) -> Hit | None:
    start = length = 0
    seen: list[str] = []
    for index, literal in enumerate(literals):
        found = (0 if text.startswith(literal) else -1) if index == 0 else text.find(literal, start)
        if found < 0:
            rest = text[start:]
            shared = next(
                (size for size in range(min(len(literal), len(rest)), 2, -1) if rest.endswith(literal[:size])), 0
            )
            if index == 0 and shared < len(text):
                return None
            seen.append(literal[:shared])
            break
        start = found + len(literal)
        seen.append(literal)
    length = sum(map(len, seen))
    hit = _hit(number, _CUT, seen)
    return hit._replace(length=length) if length >= _TELLING_LENGTH else None
