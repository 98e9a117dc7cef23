"""`lmdiag cards check` and `cards test`: what is wrong with a directory of cards, and what they find."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TextIO

from lmdiag.errors import CardError
from lmdiag.match.cards import Problem, load_cards
from lmdiag.match.library import Library, open_library
from lmdiag.match.settings import Settings, exists
from lmdiag.model import Card, Incident
from lmdiag.pipeline import Pipeline
from lmdiag.read.archives import open_bytes
from lmdiag.read.lines import LineReader
from lmdiag.report.control import visible
from lmdiag.samples import CardSet, sample_problems

_OURS = ("--", "lmcache.", "VLLM_", "LMCACHE_")
"""Settings of vLLM and LMCache; the names of other variables are not known."""


def check(directory: str, out: TextIO) -> int:
    """Check every card of a directory and run its samples, beside the shipped cards. Returns 0 if all is well, 1 if not."""
    cards, problems = _load(directory)
    library = open_library()
    own = os.path.abspath(directory)
    shipped = [card for name in library.pack.ids for card in _shipped(name, library) if not _is_in(card.path, own)]
    found = [*problems, *sample_problems(cards, shipped), *setting_problems(cards, library.settings)]
    for problem in found:
        print(visible(str(problem)), file=out)
    print(f"cards that load: {len(cards)}; problems: {len(found)}", file=out)
    return 1 if found else 0


def _shipped(name: str, library: Library) -> Iterator[Card]:
    """A shipped card that cannot be read has no say in what a site's own do."""
    try:
        yield library.pack.card(name)
    except CardError:
        return


def _is_in(path: str, directory: str) -> bool:
    return os.path.abspath(path).startswith(directory + os.sep)


def _load(directory: str) -> tuple[tuple[Card, ...], tuple[Problem, ...]]:
    if not os.path.isdir(directory):
        raise CardError(f"{directory} is not a directory; give the one that holds your cards (*.toml)")
    return load_cards(directory, open_library().pack.ids)


def setting_problems(cards: Sequence[Card], settings: Settings) -> Iterator[Problem]:
    """Yield the flags, variables and keys that no release of vLLM or LMCache knows."""
    for card in cards:
        for number, solution in enumerate(card.solutions):
            for key, _ in solution.change:
                if settings and key.startswith(_OURS) and not exists(settings, key):
                    yield Problem(card.path, f"card.solutions[{number}].change.{key}", "no release knows it")


def test(directory: str, logs: Sequence[str], out: TextIO) -> int:
    """Run the samples of a directory's cards one by one, then try the cards on logs. Returns 1 if a sample fails.

    Raises CardError for a directory, InputError for a log that cannot be read.
    """
    cards, problems = _load(directory)
    for problem in problems:
        print(visible(str(problem)), file=out)
    failed = bool(problems)
    for card in cards:
        found = list(sample_problems([card]))
        failed = failed or bool(found)
        for kind, samples in (("sample", card.samples), ("near_miss", card.near_misses)):
            for number in range(len(samples)):
                key = f"{kind}[{number}]"
                wrong = next((problem for problem in found if problem.key.startswith(key)), None)
                said = f": {wrong.message}" if wrong else ""
                print(visible(f"{'FAIL' if wrong else 'ok':4} {card.id} {key}{said}"), file=out)
    own = CardSet(cards)
    for path in logs:
        for line in _tried(path, own, len(cards)):
            print(visible(line), file=out)
    return 1 if failed else 0


def _tried(path: str, own: CardSet, number: int) -> Iterator[str]:
    incidents = [item for item in _scanned(path, own) if item.card]
    for item in incidents:
        fields = ", ".join(f"{name}={value}" for name, value in item.fields)
        yield f"{path}:{item.first_line} {item.card} ({item.confidence}) {fields}".rstrip()
    if not incidents:
        yield f"{path}: none of the {number} cards"


def _scanned(path: str, own: CardSet) -> list[Incident]:
    pipeline = Pipeline(path, own)
    with open_bytes(path) as raw:
        for line in LineReader(path, raw):
            pipeline.feed(line)
    return pipeline.close()
