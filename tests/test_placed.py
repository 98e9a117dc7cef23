"""`scan --since`, `--until` and `--last`, from the flags to the incidents: those of the whole log that lie in the span."""

from __future__ import annotations

import gzip
import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shapes import raised

from lmdiag.cli import main
from lmdiag.config import ScanConfig
from lmdiag.read.moments import unix_time
from lmdiag.scan import scan

BASE = unix_time((2026, 12, 1, 2, 0, 0), "Z")
SERVER = "(APIServer pid=1) INFO "
CORE = "(EngineCore pid=7) "


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(time, "time", lambda: BASE + 2 * 86400)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def stamp(seconds: int) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.gmtime(BASE + seconds))


def error(seconds: int, message: str) -> str:
    return raised(f"{CORE}ERROR {stamp(seconds)} [core.py:1] ", "ValueError", message).replace(
        "run_engine_core", "step"
    )


def chatter(first: int, last: int) -> str:
    return "".join(f"{SERVER}{stamp(second)} [metrics.py:1] Engine 000: all is well\n" for second in range(first, last))


LOG = (
    f"{SERVER}{stamp(0)} [utils.py:1] vLLM API server version 0.12.0\n"
    f"{SERVER}{stamp(0)} [utils.py:1] non-default args: {{'model': 'some/model', 'max_model_len': 77}}\n"
    "(APIServer pid=1) INFO:     Application startup complete.\n"
    + chatter(1, 1000)
    + error(1000, "the first one")
    + chatter(1001, 3000)
    + error(3000, "the second one")
    + chatter(3001, 5000)
    + error(5000, "the third one")
    + chatter(5001, 6000)
)


def put(path: Path, text: str = LOG, written: float = BASE + 6000) -> str:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    os.utime(path, (written, written))
    return str(path)


def run(*paths: str, **options: Any) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """Incidents, summary, problems."""
    out, err = io.StringIO(), io.StringIO()
    scan(ScanConfig(paths=paths, format="jsonl", **options), out, err)
    *incidents, summary = map(json.loads, out.getvalue().splitlines())
    return incidents, summary, err.getvalue()


def messages(incidents: list[dict[str, Any]]) -> list[str]:
    return [item["root"]["message"] for item in incidents]


SPANS = [
    ({"since": "12-01 02:40:00"}, ["the second one", "the third one"]),
    ({"since": "2026-12-01T02:40:00Z", "until": "2026-12-01 03:00"}, ["the second one"]),
    ({"until": "12-01 02:40:00"}, ["the first one"]),
    ({"last": "20m"}, ["the third one"]),
    ({"since": "12-01 02:50:00", "until": "12-01 02:50:00"}, ["the second one"]),
    ({"since": "12-01 02:50:01", "until": "12-01 03:23:19"}, []),
    ({"since": "12-01 02:00:00"}, ["the first one", "the second one", "the third one"]),
]


@pytest.mark.parametrize("name", ["server.log", "server.log.gz"])
@pytest.mark.parametrize(("flags", "expected"), SPANS)
def test_the_incidents_are_those_of_the_whole_log(
    tmp_path: Path, name: str, flags: dict[str, str], expected: list[str]
) -> None:
    path = put(tmp_path / name)
    whole = {item["root"]["message"]: item for item in run(path)[0]}
    incidents, summary, problems = run(path, **flags)
    assert messages(incidents) == expected
    assert incidents == [whole[message] for message in expected]
    assert problems == ""
    assert summary["sources"] == 1


def test_only_the_span_is_read(tmp_path: Path) -> None:
    summary = run(put(tmp_path / "server.log"), last="1m")[1]
    assert summary["lines"] < 100 + 256 * 16  # with what the server said at its start
    assert summary["bytes"] < 300_000


def test_several_processes_read_the_same(tmp_path: Path) -> None:
    paths = [put(tmp_path / name) for name in ("a.log", "b.log.gz", "c.log")]
    one, several = (run(*paths, since="12-01 02:40:00", until="12-01 03:00:00", jobs=jobs) for jobs in (1, 3))
    assert one[0] == several[0]
    assert messages(one[0]) == ["the second one"] * 3
    assert one[1]["lines"] == several[1]["lines"]


def test_last_of_a_rotated_log_is_that_of_its_newest_part(tmp_path: Path) -> None:
    lines = LOG.splitlines(keepends=True)
    put(tmp_path / "server.log.2.gz", "".join(lines[:2000]), BASE - 86_400 + 1990)
    put(tmp_path / "server.log.1", "".join(lines[2000:5100]), BASE + 4990)
    path = put(tmp_path / "server.log", "".join(lines[5100:]))
    assert messages(run(path, last="20m")[0]) == []
    assert messages(run(path, last="20m", rotated=True)[0]) == ["the third one"]
    assert messages(run(path, last="60m", rotated=True)[0]) == ["the second one", "the third one"]
    os.truncate(path, 0)  # a new part without a line
    assert messages(run(path, last="20m", rotated=True)[0]) == ["the first one", "the third one"]


def test_a_log_without_times_is_read_whole_and_that_is_said(tmp_path: Path) -> None:
    text = raised(CORE, "ValueError", "no time stands here")
    incidents, _, problems = run(put(tmp_path / "server.log", text), since="12-01 02:00:00")
    assert messages(incidents) == ["no time stands here"]
    assert problems.startswith(f"lmdiag: {tmp_path}/server.log: no line in the first 8 MiB begins with a time")


def test_an_empty_span_is_said(tmp_path: Path) -> None:
    path = put(tmp_path / "server.log")
    for flags in ({"since": "2026-12-01 05:00"}, {"until": "2026-11-30 05:00"}):
        incidents, summary, problems = run(path, **flags)
        assert (incidents, summary["lines"]) == ([], 0)
        assert "nothing lies in this span of time" in problems
        assert "local time" in problems


def test_contradictions_end_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path / "server.log")
    assert main(["scan", path, "--last", "10m", "--since", "1h"]) == 2
    assert "--last counts back from the newest line of each log" in capsys.readouterr().err
    assert main(["scan", path, "--since", "2026-12-02 02:00", "--until", "2026-12-01 02:00"]) == 2
    assert "is after" in capsys.readouterr().err
    assert main(["scan", path, "--last", "20m", "--format", "jsonl"]) == 1
    assert "the third one" in capsys.readouterr().out
