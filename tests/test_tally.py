from __future__ import annotations

import io

from lmdiag.errors import InputError
from lmdiag.examine import Counts, Examined
from lmdiag.read.paths import Input
from lmdiag.tally import Tally

LOG = Input("/var/log/server.log", "server.log")


def test_counts_are_added_up() -> None:
    tally = Tally([], io.StringIO())
    tally.add(LOG, Examined(counts=Counts(sources=1, lines=3, bytes=30)))
    tally.add(LOG, Examined(counts=Counts(sources=1, lines=4, bytes=40), interrupted=True))
    summary = tally.summary(())
    assert (summary.sources, summary.lines, summary.bytes) == (2, 7, 70)
    assert summary.interrupted
    assert not tally.failed


def test_a_problem_is_told_and_kept_with_the_name_that_was_typed() -> None:
    err = io.StringIO()
    tally = Tally([("core.bin", "not text")], err)
    tally.add(LOG, Examined(problems=("server.log: it shrank",)))
    tally.add(LOG, Examined(problems=("/var/log/server.log: Permission denied",)))
    tally.report(InputError("none.log: No such file"))
    assert tally.failed
    assert tally.summary(()).skipped == (
        ("core.bin", "not text"),
        ("server.log", "it shrank"),
        ("server.log", "/var/log/server.log: Permission denied"),
        ("none.log", "No such file"),
    )
    assert err.getvalue().count("lmdiag: ") == 3


def test_a_note_is_told_and_no_failure() -> None:
    err = io.StringIO()
    tally = Tally([], err)
    tally.add(LOG, Examined(notes=("server.log: it has no times\x1b[31m",)))
    assert (tally.failed, tally.summary(()).skipped) == (False, ())
    assert err.getvalue().startswith("lmdiag: server.log: it has no times")
    assert "\x1b" not in err.getvalue()


def test_muted_patterns_of_several_libraries_are_added_up() -> None:
    assert Tally([], io.StringIO()).summary((("b", 1), ("a", 2), ("b", 3))).muted_patterns == (("a", 2), ("b", 4))
