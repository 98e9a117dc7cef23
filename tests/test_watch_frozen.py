"""A saved state comes back as it was, and can do no harm."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

from helpers import NoCards

from lmdiag.pipeline import Pipeline
from lmdiag.read.lines import Splitter
from lmdiag.watch import frozen

LOG = (Path(__file__).parent / "logs" / "mla-serde-start-failed.log").read_bytes()


def test_a_pipeline_goes_on_wherever_it_was_saved() -> None:
    splitter, pipeline = Splitter("s"), Pipeline("s", NoCards())
    for start in range(0, len(LOG), 997):
        for line in splitter.feed(LOG[start : start + 997]):
            pipeline.feed(line)
        loaded = frozen.load(frozen.dump((splitter, pipeline)))
        assert loaded is not None
        splitter, pipeline = loaded
        pipeline.attach(NoCards())
    whole = Pipeline("s", NoCards())
    for line in (*(other := Splitter("s")).feed(LOG), *other.finish()):
        whole.feed(line)
    for line in splitter.finish():
        pipeline.feed(line)
    assert pipeline.close() == whole.close()


def test_the_cards_are_no_part_of_it() -> None:
    assert len(frozen.dump(Pipeline("s", NoCards()))) < 4000


def test_another_versions_state_is_none() -> None:
    assert frozen.load(b"lmdiag 0.0.1 python 3.9 1\n" + pickle.dumps(1)) is None


def test_a_damaged_state_is_none() -> None:
    data = frozen.dump(Pipeline("s", NoCards()))
    assert frozen.load(data[:-20]) is None
    assert frozen.load(b"") is None


def test_a_state_cannot_run_anything(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {tmp_path}/was-here",)

    assert frozen.load(frozen.dump(Evil())) is None
    assert list(tmp_path.iterdir()) == []


def test_nothing_can_be_reached_through_what_is_allowed() -> None:
    """By attributes of our own classes, or by what our modules import."""
    from functools import partial

    class ByAttribute:
        def __reduce__(self) -> tuple[Any, ...]:
            return getattr, (Pipeline, "feed")

    class ByImport:
        def __reduce__(self) -> tuple[Any, ...]:
            return partial, (print, "x")

    assert frozen.load(frozen.dump(ByAttribute())) is None
    assert frozen.load(frozen.dump(ByImport())) is None
    imported = frozen.dump(Pipeline("s", NoCards())).replace(b"lmdiag.pipeline", b"lmdiag.watch.s.")
    assert frozen.load(imported) is None


def test_functions_of_ours_cannot_be_called_either() -> None:
    class Sly:
        def __reduce__(self) -> tuple[Any, ...]:
            from lmdiag.cli import main

            return main, (["--version"],)

    assert frozen.load(frozen.dump(Sly())) is None
