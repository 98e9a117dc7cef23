"""The file sink: whole lines, rotation, several writers, full disks; and a log reader that finds nothing in it."""

from __future__ import annotations

import fcntl
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from messages import NOW, message, summary
from report_samples import with_message

from lmdiag.config import ScanConfig, SinkConfig
from lmdiag.forward.data import record
from lmdiag.forward.message import DELIVERED, RETRY, Message
from lmdiag.forward.sinks.file import FileSink, make
from lmdiag.report.jsonl import incident_object
from lmdiag.scan import scan

SIZE = len(record(message()).encode())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "incidents.jsonl"


def sink(path: Path, **changes: Any) -> FileSink:
    return make(SinkConfig("x", "file", path=str(path))._replace(**changes))


def with_key(key: str) -> Message:
    return message()._replace(key=key)


def keys(path: Path) -> list[str]:
    return [json.loads(line)["key"] for line in path.read_text().splitlines()]


def test_a_line_holds_key_time_node_and_incident(path: Path) -> None:
    assert sink(path).send([message()], NOW).result == DELIVERED
    assert json.loads(path.read_text()) == {
        "key": "key-opened",
        "at": "2025-12-03T00:00:00.000Z",
        "instance": "node7",
        "data": json.loads(json.dumps(incident_object(message().incident))),
    }


def test_a_summary_lists_its_members(path: Path) -> None:
    sink(path).send([summary(count=2, left_out=3)], NOW)
    data = json.loads(path.read_text())["data"]
    assert (data["kind"], data["id"], data["count"], data["left_out"]) == ("summary_of_incidents", "storm-1", 5, 3)
    assert [item["id"] for item in data["incidents"]] == ["id-0", "id-1"]


def test_lines_are_appended_in_order(path: Path) -> None:
    for _ in range(2):
        assert sink(path).send([with_key("1"), with_key("2")], NOW).result == DELIVERED
    assert keys(path) == ["1", "2", "1", "2"]


def test_a_new_file_is_the_owners_alone(path: Path) -> None:
    sink(path).send([message()], NOW)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_mode_of_a_file_that_is_there_stays(path: Path) -> None:
    path.touch()
    path.chmod(0o640)
    sink(path).send([message()], NOW)
    assert path.stat().st_mode & 0o777 == 0o640


def test_it_rotates_before_it_grows_too_large(path: Path) -> None:
    rotating = sink(path, max_size=2 * SIZE, keep=2)
    assert rotating.send([with_key(f"key-{number:06}") for number in range(7)], NOW).result == DELIVERED
    found = [keys(path.with_name(path.name + end)) for end in (".2", ".1", "")]
    assert found == [["key-000002", "key-000003"], ["key-000004", "key-000005"], ["key-000006"]]
    assert len(list(path.parent.iterdir())) == 3


def test_a_line_larger_than_a_file_has_its_own(path: Path) -> None:
    assert sink(path, max_size=10).send([with_key("1"), with_key("2")], NOW).result == DELIVERED
    assert keys(path) == ["2"]
    assert keys(path.with_name(path.name + ".1")) == ["1"]


def test_nothing_is_kept_if_nothing_is_to_be(path: Path) -> None:
    sink(path, max_size=SIZE, keep=0).send([with_key("key-000001"), with_key("key-000002")], NOW)
    assert keys(path) == ["key-000002"]
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupted_rotation_loses_no_old_file(path: Path) -> None:
    """It was killed after path.1 had become path.2: nothing is to move on over path.3."""
    for end in (".2", ".3"):
        path.with_name(path.name + end).write_text(end)
    sink(path, max_size=10, keep=3).send([with_key("1"), with_key("2")], NOW)
    assert [path.with_name(path.name + end).read_text() for end in (".2", ".3")] == [".2", ".3"]
    assert keys(path.with_name(path.name + ".1")) == ["1"]


def test_half_a_line_of_a_crash_is_ended(path: Path) -> None:
    path.write_text('{"key": "half')
    sink(path).send([with_key("1"), with_key("2")], NOW)
    lines = path.read_text().splitlines()
    assert lines[0] == '{"key": "half'
    assert [json.loads(line)["key"] for line in lines[1:]] == ["1", "2"]


def test_writers_do_not_disturb_one_another(path: Path) -> None:
    """Each thread has its own sink, as several processes have; all rotate all the time."""

    def write(writer: int) -> None:
        own = sink(path, max_size=3 * SIZE, keep=100)
        for number in range(12):
            assert own.send([with_key(f"{writer}-{number}-{part}") for part in "abc"], NOW).result == DELIVERED

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = sorted(path.parent.iterdir(), key=lambda file: -int(file.suffix[1:]) if file != path else 0)
    found = [key for file in files for key in keys(file)]
    assert len(found) == len(set(found)) == 4 * 12 * 3
    assert all(file.stat().st_size <= 3 * SIZE + 100 for file in files)
    for writer in range(4):
        own = [key for key in found if key.startswith(f"{writer}-")]
        assert own == [f"{writer}-{number}-{part}" for number in range(12) for part in "abc"]


FULL = """
import resource, sys
sys.path.insert(0, {tests!r})
from messages import NOW, message
from lmdiag.config import SinkConfig
from lmdiag.forward.sinks.file import make
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
print(make(SinkConfig("x", "file", path={path!r})).send([message()] * 3, NOW))
"""


def test_a_short_write_is_undone(path: Path) -> None:
    """The disk takes one and a half of three lines (a limit on the size of files does what a full disk does)."""
    path.write_text("before\n")
    program = FULL.format(tests=str(Path(__file__).parent), limit=SIZE * 3 // 2, path=str(path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "result='retry'" in done.stdout
    assert "File too large" in done.stdout
    assert path.read_text() == "before\n"


def test_a_lock_that_another_process_keeps_is_not_waited_for_longer_than_the_timeout(path: Path) -> None:
    with path.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        outcome = sink(path, timeout=0.05).send([message()], NOW)
    assert (outcome.result, outcome.detail) == (RETRY, f"{path}: another process holds its lock")
    assert path.read_text() == ""


def test_a_link_is_not_followed(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("precious\n")
    path.symlink_to(target)
    outcome = sink(path).send([message()], NOW)
    assert outcome.result == RETRY
    assert "name the file that the link points to" in outcome.detail
    assert target.read_text() == "precious\n"


def test_a_directory_on_the_way_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert sink(tmp_path / "link" / "x.jsonl").send([message()], NOW).result == DELIVERED
    assert keys(tmp_path / "real" / "x.jsonl") == ["key-opened"]


def test_what_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    assert "make its directory" in sink(tmp_path / "missing" / "x").send([message()], NOW).detail
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in sink(tmp_path / "fifo").send([message()], NOW).detail
    outcome = sink(tmp_path).send([message()], NOW)
    assert (outcome.result, "directory" in outcome.detail) == (RETRY, True)


def test_a_preview_writes_nothing(path: Path) -> None:
    assert sink(path).preview([message()], NOW) == f"append to {path}:\n{record(message())}"
    assert not path.exists()


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for file in (path, path.parent, path / "x"):
        sink(file, max_size=10).send([message(), message()], NOW)
    assert len(os.listdir("/proc/self/fd")) == before


ERRORS = (
    "(EngineCore_DP0 pid=7) ERROR 12-01 02:00:00 [core.py:708] ValueError: No available memory for the cache blocks.",
    'Traceback (most recent call last):\n  File "/x/vllm/core.py", line 1, in f\nValueError: boom',
    '{"levelname": "ERROR", "message": "boom", "exc_info": "Traceback (most recent call last):\\nValueError: boom"}',
    "vllm-1  | ERROR 12-01 02:00:00 [core.py:708] RuntimeError: Engine core initialization failed.",
    "2025-12-01T02:00:00.000000000Z stderr F ERROR 12-01 02:00:00 [core.py:708] ValueError: boom",
    "\r\nERROR 12-01 02:00:00 [core.py:708] ValueError: boom\u2028ValueError: boom\x85\x1b[31mERROR\x1b[0m",
    "INFO 12-01 02:00:00 [api.py:1] vLLM API server version 0.26.0\nFATAL: killed",
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60), st.sampled_from(ERRORS), st.integers(0, 4000))
@example(text="", error=ERRORS[0], cut=0)
def test_what_it_quotes_is_no_error_of_the_file_itself(path: Path, text: str, error: str, cut: int) -> None:
    """A scan of the file finds nothing, though each line holds evidence; not even where a crash tore one."""
    path.unlink(missing_ok=True)
    quoting = message(change=lambda _: with_message(f"{text}{error}\n{error}"))
    sink(path).send([quoting, summary()], NOW)
    with path.open("a") as file:
        file.write(record(quoting)[:cut])
    sink(path).send([quoting], NOW)
    out = io.StringIO()
    assert scan(ScanConfig((str(path),), "jsonl", exit_zero=True), out, sys.stderr) == 0
    assert [json.loads(line)["kind"] for line in out.getvalue().splitlines()] == ["summary"]
