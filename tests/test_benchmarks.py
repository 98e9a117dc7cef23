"""The benchmarks' own logic: pairs and their ratios, bounds, processes, peers; nothing here is timed."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import peers, results
from benchmarks.logs import size_name
from benchmarks.packs import messages
from benchmarks.pairs import Bound, Paired, median, paired, spread
from benchmarks.processes import Command, Run, output_of, run, seen, warm
from benchmarks.rows import Row, flat

A, B = Command(("a",)), Command(("b",))


def taken(*seconds: float) -> tuple[Run, ...]:
    return tuple(Run(value, value, 10 * value) for value in seconds)


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where benchmarks write lies in the test's own directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_commands_run_in_turn_after_one_of_each_that_does_not_count() -> None:
    order: list[str] = []
    clock = itertools.count(1)

    def take(command: Command) -> Run:
        order.append(command.argv[0])
        return Run(next(clock), 0, 0)

    made = paired(A, B, 3, take=take)
    assert "".join(order) == "ab" + "ab" * 3
    assert [one.seconds for one in made.first] == [3, 5, 7]
    assert [one.seconds for one in made.second] == [4, 6, 8]


def test_ratios_are_those_of_the_pairs() -> None:
    made = Paired(taken(1, 2, 9), taken(2, 2, 3))
    assert made.ratios == (1.0, 0.5, 3.0)
    assert made.inverse == (1.0, 1 / 3, 2.0)
    assert made.ratio_of_medians == 2 / 2


def test_one_slow_run_does_not_move_the_ratio_of_medians() -> None:
    assert Paired(taken(1, 1, 50), taken(2, 2, 2)).ratio_of_medians == 0.5


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_the_median_is_that_of_the_standard_library(values: list[float]) -> None:
    import statistics

    assert median(values) == pytest.approx(statistics.median(values))
    assert spread(values).least <= spread(values).median <= spread(values).most


@pytest.mark.parametrize(
    ("bound", "good", "bad", "looser"),
    [(Bound(2.0), 2.0, 2.1, Bound(3.0)), (Bound(30, at_least=True), 30, 29.9, Bound(20, at_least=True))],
)
def test_a_bound_is_a_most_or_a_least(bound: Bound, good: float, bad: float, looser: Bound) -> None:
    assert bound.holds(good)
    assert not bound.holds(bad)
    assert bound.loosened(1.5) == looser


def test_a_peer_is_slower_by_the_other_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.rows.paired", lambda *_: Paired(taken(1, 1, 1), taken(30, 40, 20)))
    row = Row("peer", "dense log", "peer", A, B, Bound(30, at_least=True)).measure(3)
    assert (row.figure.median, row.steady, row.kept) == (30, 30, True)
    against = Row("rg", "dense log", "rg", A, B).measure(3)
    assert against.figure.median == pytest.approx(1 / 30)
    assert against.kept


def test_memory_is_flat_if_no_size_needs_more_than_another() -> None:
    assert flat("sparse", [(10**6, 9.0), (10**7, 20.0), (10**9, 21.0)]).figure.median == pytest.approx(1.05)


def test_a_peak_that_is_this_process_s_own_is_not_believed() -> None:
    assert seen([Run(1, 1, 1e6), Run(1, 1, 2e6)]) == [1e6, 2e6]
    with pytest.raises(SystemExit, match="own"):
        seen([Run(1, 1, 1e6), Run(1, 1, 1)])


def test_a_process_is_measured_and_its_output_kept(in_tmp: Path) -> None:
    code = "import os, sys; print(os.environ['WORD']); sys.exit(3)"
    command = Command((sys.executable, "-c", code), {"WORD": "hello"}, good=(0, 3))
    assert output_of(command) == b"hello\n"
    found = run(command)
    assert found.seconds > 0
    assert found.cpu > 0
    assert found.peak_mib > 1


def test_a_failing_process_is_reported_with_what_it_said(in_tmp: Path) -> None:
    with pytest.raises(SystemExit, match="no good"):
        run(Command((sys.executable, "-c", "raise ValueError('no good')")))
    with pytest.raises(SystemExit, match="not installed"):
        run(Command(("lmdiag-there-is-no-such-program",)))


def test_a_missing_peer_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.peers.shutil.which", lambda _: None)
    monkeypatch.setattr("benchmarks.peers.find_spec", lambda _: None)
    assert set(peers.versions().values()) == {""}
    assert "not installed" in results.facts(peers.versions())


def test_each_peer_is_configured_for_the_same_two_exceptions(in_tmp: Path) -> None:
    for peer in peers.PEERS:
        command = peer.command("server.log")
        files = [Path(part.rpartition("=")[2]) for part in command.argv]
        said = " ".join(
            [*command.argv, *(file.read_text() for file in files if file.is_file() and file.stat().st_size < 9000)]
        )
        assert "ValueError" in said, peer.name
        assert "RuntimeError" in said, peer.name


@pytest.mark.parametrize(("size", "name"), [(20_000, "20 KB"), (10**8, "100 MB"), (10**10, "10 GB"), (12, "12 B")])
def test_sizes_as_people_write_them(size: int, name: str) -> None:
    assert size_name(size) == name


def test_a_larger_pack_has_the_cards_of_the_smaller_one_first() -> None:
    few, many = messages(10), messages(1000)
    assert many[:10] == few
    assert len(set(many)) == 1000


def test_warming_reads_a_file_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 3_000_000)
    warm(tmp_path / "log")
