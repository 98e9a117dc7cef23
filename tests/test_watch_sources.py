"""Which sources are followed, where each begins, and when one is read or given up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from helpers import NoCards

from lmdiag.config import WatchConfig
from lmdiag.read.wake import PollWaker
from lmdiag.watch.sources import GONE_AFTER, SAFETY_POLL, Streams
from lmdiag.watch.store import Saved
from lmdiag.watch.stream import Stream

LOGS = Path(__file__).parent / "logs"
SERDE = (LOGS / "mla-serde-start-failed.log").read_bytes()


class Hearing(PollWaker):
    """A waker that hears everything."""

    def deaf(self, path: str) -> bool:
        """Hear it."""
        return False


def streams_of(*paths: str, saved: dict[str, Saved] | None = None, waker: PollWaker | None = None, own: Any = (), **settings: Any) -> Streams:  # fmt: skip
    """The streams of a configuration, looked for once."""
    config = WatchConfig(paths=paths, **settings)
    found = Streams(config, NoCards(), saved or {}, waker or Hearing(), frozenset(own))  # type: ignore[arg-type]
    found.discover(0.0 + config.scan_interval)
    return found


def names(streams: Streams) -> list[str]:
    """Names of the sources."""
    return sorted(stream.source.name for stream in streams.all())


def drained(stream: Stream) -> bytes:
    """Everything that a source gives now."""
    return b"".join(iter(stream.source.read, b""))


@pytest.mark.parametrize(("where", "expected"), [("start", b"old\nnew\n"), ("end", b"")])
def test_a_first_start_begins_where_it_is_told(tmp_path: Path, where: str, expected: bytes) -> None:
    (tmp_path / "a.log").write_bytes(b"old\nnew\n")
    [stream] = streams_of(str(tmp_path / "a.log"), from_=where).all()
    assert drained(stream) == expected
    assert stream.baseline


def test_it_begins_with_the_servers_current_life_and_counts_the_lines_before(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(SERDE + SERDE)
    [stream] = streams_of(str(tmp_path / "a.log")).all()
    data = drained(stream)
    assert len(data) <= len(SERDE)
    assert stream.lines + data.count(b"\n") == (SERDE + SERDE).count(b"\n")


def test_a_file_that_comes_later_is_news_from_its_start(tmp_path: Path) -> None:
    found = streams_of(str(tmp_path / "*.log"), from_="end")
    (tmp_path / "b.log").write_bytes(b"one\n")
    found.discover(100.0)
    [stream] = found.all()
    assert (drained(stream), stream.baseline) == (b"one\n", False)


def test_it_goes_on_where_the_last_run_was(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"one\n")
    [stream] = streams_of(str(log), from_="start").all()
    stream.feed(drained(stream), 1.0)
    saved = {str(log): Saved(stream.source.position(), stream.save())}
    with log.open("ab") as file:
        file.write(b"two\n")
    [again] = streams_of(str(log), saved=saved).all()
    assert drained(again) == b"two\n"
    assert (again.lines, again.fresh) == (1, False)


def test_a_state_that_cannot_be_used_reads_the_life_up_to_there_once_more(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(SERDE)
    [stream] = streams_of(str(log), from_="start").all()
    drained(stream)
    saved = {str(log): Saved(stream.source.position(), b"of another version")}
    [again] = streams_of(str(log), saved=saved, from_="start").all()
    assert (drained(again), again.fresh, again.baseline) == (b"", True, False)
    assert [finding.outcome for finding in again.findings()] == ["start_failed"]  # it was read once more, up to there


def test_the_daemons_own_output_is_not_followed(tmp_path: Path) -> None:
    for name in ("a.log", "own.log"):
        (tmp_path / name).write_bytes(b"x\n")
    status = os.stat(tmp_path / "own.log")
    found = streams_of(str(tmp_path), own={(status.st_dev, status.st_ino)})
    assert names(found) == [str(tmp_path / "a.log")]


def test_a_pattern_and_its_rotated_files_are_one_source(tmp_path: Path) -> None:
    for name in ("a.log", "a.log.1", "a.log.2.gz", "b.log"):
        (tmp_path / name).write_bytes(b"x\n")
    assert names(streams_of(str(tmp_path / "*.log*"))) == [str(tmp_path / "a.log"), str(tmp_path / "b.log")]


def test_what_was_told_to_have_changed_is_read_and_all_from_time_to_time(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.log", "b.log")]
    for path in paths:
        Path(path).touch()
    found = streams_of(*paths)
    assert found.awake(100.0) is None
    assert found.awake(100.1) == set()
    found.woken((), {paths[1]})
    assert found.awake(100.2) == {paths[1]}
    assert found.awake(100.3) == set()
    assert found.wait(100.3) == pytest.approx(SAFETY_POLL - 0.3)
    assert found.awake(100.0 + SAFETY_POLL) is None


def test_where_nothing_is_heard_it_polls(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    found = streams_of(str(tmp_path / "a.log"), waker=PollWaker(), poll_interval=0.1)
    assert found.awake(100.0) is None
    assert found.wait(100.0) == pytest.approx(0.1)
    assert found.awake(100.05) == set()
    assert found.awake(100.2) == {str(tmp_path / "a.log")}


def test_a_clock_that_is_set_back_does_not_stop_the_reading(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    found = streams_of(str(tmp_path / "a.log"))
    assert found.awake(1000.0) is None
    assert found.awake(500.0) is None


def test_a_log_that_is_gone_for_long_is_given_up(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"x\n")
    found = streams_of(str(tmp_path / "*.log"), from_="start")
    [stream] = found.all()
    stream.begin(10.0)
    stream.feed(drained(stream), 10.0)
    log.unlink()
    found.discover(10.0 + GONE_AFTER / 2)
    assert names(found) == [str(log)]
    found.discover(11.0 + GONE_AFTER)
    assert (names(found), found.gone) == ([], [str(log)])


def test_a_named_log_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    found = streams_of(str(log))
    found.discover(GONE_AFTER * 3)
    [stream] = found.all()
    assert stream.source.required
    stream.source.read()
    assert "does not exist" in stream.source.problem
    log.write_bytes(b"x\n")
    assert drained(stream) == b"x\n"


def test_a_directory_that_comes_later_takes_the_place_of_its_name(tmp_path: Path) -> None:
    found = streams_of(str(tmp_path / "logs"))
    assert names(found) == [str(tmp_path / "logs")]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_bytes(b"x\n")
    found.discover(100.0)
    assert names(found) == [str(tmp_path / "logs" / "a.log")]


def test_a_reload_takes_in_what_is_new_and_drops_what_is_gone(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(b"x\n")
    found = streams_of(str(tmp_path / "a.log"))
    found.reload(WatchConfig(paths=(str(tmp_path / "b.log"),)), NoCards())  # type: ignore[arg-type]
    found.discover(100.0)
    assert names(found) == [str(tmp_path / "b.log")]


def test_a_path_that_a_reload_adds_is_read_from_where_it_is_told(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(b"old\n")
    found = streams_of(str(tmp_path / "a.log"), from_="end")
    found.reload(WatchConfig(paths=(str(tmp_path / "a.log"), str(tmp_path / "b.log")), from_="end"), NoCards())  # type: ignore[arg-type]
    found.discover(100.0)
    assert [drained(stream) for stream in found.all()] == [b"", b""]


def test_a_directory_that_was_away_is_not_read_again(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.log").write_bytes(b"one\n")
    found = streams_of(str(logs / "*.log"), from_="start")
    [stream] = found.all()
    stream.begin(10.0)
    stream.feed(drained(stream), 10.0)
    logs.rename(tmp_path / "away")
    for now in (2000.0, 4000.0):
        found.discover(now)
    assert names(found) == []
    (tmp_path / "away").rename(logs)
    found.discover(5000.0)
    [stream] = found.all()
    assert (drained(stream), stream.lines, stream.fresh) == (b"", 1, False)


def test_a_name_that_is_not_utf8_is_followed_under_one_that_is(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.log"
    with open(path, "wb") as file:
        file.write(b"one\n")
    [stream] = streams_of(str(tmp_path / "*.log"), from_="start").all()
    assert stream.source.name == f"{tmp_path}/caf\\xe9.log"
    assert drained(stream) == b"one\n"
    str(stream.source.position()).encode()


def test_a_container_is_listened_to_where_it_writes_now(tmp_path: Path) -> None:
    pod = tmp_path / "pods" / "ns_pod_uid" / "vllm"
    pod.mkdir(parents=True)
    (pod / "0.log").write_bytes(b"one\n")
    found = streams_of(str(tmp_path / "pods"), from_="start")
    [stream] = found.all()
    drained(stream)
    (pod / "1.log").write_bytes(b"two\n")
    found.discover(100.0)
    drained(stream)
    found.discover(200.0)
    assert found.awake(200.0) is None
    found.woken((), {str(pod / "1.log")})
    assert found.awake(200.1) == {stream.source.name}
