"""Packs of so many cards: a copy of the installed lmdiag with cards made of the catalogue's messages in place of its own."""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path

from benchmarks.failures import CATALOG, failures, texts
from benchmarks.processes import DATA, Command, output_of, run
from lmdiag.match.catalog import read_catalog
from lmdiag.match.catalog_format import HOLE

MATCHED = 10
"""So many cards of each pack are of failures that the logs have: with more cards, a scan has no more to tell."""
_ASK = "import lmdiag, lmdiag.match.pack as p; print(lmdiag.__path__[0]); print(p.shipped_directory())"
_CARD = """\
title = "Card {number}"
severity = "error"
scope = "startup"
tags = ["bench"]

[[match]]
message = {message}

[card]
meaning = "The check number {number}."
trigger = "A value that it does not take."
situations = ["Any."]
references = ["https://example.com/issues/{number}"]

[[card.solutions]]
text = "Set another value."
risk = "safe"

[[sample]]
log = "ValueError: x"

[[near_miss]]
log = "ValueError: y"
"""


def pack_of(count: int, python: str) -> Path:
    """Return a directory with an lmdiag of so many cards, to be put on PYTHONPATH. Made anew each time: lmdiag may have changed.

    `python` is an interpreter that has lmdiag. It is made by a process of its own: the catalogue is large in memory.
    """
    run(Command((python, "-m", "benchmarks.packs", str(count))))
    return _place(count)


def _place(count: int) -> Path:
    return DATA / "packs" / str(count)


def make(count: int, python: str) -> None:
    """Make the pack of so many cards. Raises ValueError if the catalogue has not that many messages."""
    target = _place(count)
    shutil.rmtree(target, ignore_errors=True)
    package, shipped = output_of(Command((python, "-c", _ASK), {"PYTHONSAFEPATH": "1"})).decode().split("\n")[:2]
    ignored = shutil.ignore_patterns("__pycache__", "rules")
    shutil.copytree(package, target / "lmdiag", ignore=ignored)
    rules = target / "lmdiag" / "rules"
    shutil.copytree(shipped, rules, ignore=lambda folder, names: _other(names, top=Path(folder) == Path(shipped)))
    (rules / "bench").mkdir()
    for number, message in enumerate(messages(count)):
        text = _CARD.format(number=number, message=json.dumps(message))
        (rules / "bench" / f"card-{number}.toml").write_text(text, encoding="utf-8")
    run(Command((python, "-m", "lmdiag.match.pack", str(rules.resolve())), environment(target)))


def environment(pack: Path) -> dict[str, str]:
    """Return the variables by which a process takes the lmdiag of a pack."""
    return {"PYTHONPATH": str(pack.resolve()), "PYTHONSAFEPATH": "1"}


def _other(names: list[str], *, top: bool) -> set[str]:
    """Return what is not copied: the shipped cards and their index. The catalogue is."""
    return {name for name in names if top and name not in {"__init__.py", "catalog"}}


def messages(count: int) -> list[str]:
    """Return the templates of so many cards, the first of failures that the generated logs have, all others of none."""
    logged = {failure.template for failure in failures(1500)}
    known = [text for _, text in texts(read_catalog(CATALOG)) if text not in logged and _fits(text)]
    random.Random(1).shuffle(known)  # noqa: S311 - the same order each time
    chosen = [text for text in sorted(logged) if _fits(text)][:MATCHED] + known
    if len(chosen) < count:
        raise ValueError(f"the catalogue has {len(chosen)} messages that a card can have, not {count}")
    return [_template(text) for text in chosen[:count]]


def _fits(text: str) -> bool:
    """Whether a message can be a card's as it is: no braces, a literal at its head, and no two holes side by side."""
    return not set(text) & {"{", "}", "\n", "\\"} and text[:12].isprintable() and HOLE * 2 not in text


def _template(text: str) -> str:
    first, *more = text.split(HOLE)
    return first + "".join(f"{{hole{number}}}{part}" for number, part in enumerate(more))


if __name__ == "__main__":
    make(int(sys.argv[1]), sys.executable)
