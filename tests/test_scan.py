from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from shapes import raised
from test_match_cards import GOOD

from lmdiag.config import ScanConfig
from lmdiag.errors import UsageError
from lmdiag.match.pack import shipped_directory
from lmdiag.report.schema import json_schema
from lmdiag.scan import scan

CARD = GOOD.replace('raised_in = ["adapter.py:_init"]\n', "")
READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
FAILED = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", "serde a of 3 is not naive")
RUNNING = READY + raised(
    "(APIServer pid=1) ERROR 12-01 02:00:00 [stats.py:1] ", "ValueError", "no statistics today"
).replace("run_engine_core", "do_log_stats")
REQUEST = READY + raised("(APIServer pid=1) ERROR 12-01 02:00:00 [serving_chat.py:1] ", "ValueError", "bad prompt")
HEALTHY = "(APIServer pid=1) INFO 12-01 02:00:00 [api_server.py:1] vLLM API server version 0.10.2\n" + READY


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def run(*paths: str, **options: Any) -> tuple[int, str, str]:
    """Exit code, report, and problems."""
    out, err = io.StringIO(), io.StringIO()
    return scan(ScanConfig(paths=paths, color=False, width=100, **options), out, err), out.getvalue(), err.getvalue()


def objects(*paths: str, **options: Any) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """Exit code, incidents and summary."""
    code, text, _ = run(*paths, format="jsonl", **options)
    *incidents, summary = map(json.loads, text.splitlines())
    return code, incidents, summary


CODES = [
    (HEALTHY, "info", 0), ("", "info", 0),
    (FAILED, "critical", 1), (FAILED, "info", 1),
    (RUNNING, "warning", 1), (RUNNING, "error", 0), (RUNNING, "critical", 0),
    (REQUEST, "info", 1), (REQUEST, "warning", 0),
]  # fmt: skip


@pytest.mark.parametrize(("log", "fail_on", "code"), CODES)
def test_the_exit_code_tells_the_worst_severity(tmp_path: Path, log: str, fail_on: str, code: int) -> None:
    path = write(tmp_path / "server.log", log)
    assert run(path, fail_on=fail_on)[0] == code
    assert run(path, fail_on=fail_on, exit_zero=True)[0] == 0


def test_a_missing_file_among_good_ones(tmp_path: Path) -> None:
    good, missing = write(tmp_path / "server.log", FAILED), str(tmp_path / "missing.log")
    code, out, err = run(missing, good)
    assert code == 2
    assert "serde a of 3 is not naive" in out
    assert err.startswith("lmdiag: ")
    assert "missing.log" in err
    assert "No such file" in err


def test_an_unreadable_input_is_told_even_with_exit_zero(tmp_path: Path) -> None:
    assert run(str(tmp_path / "missing.log"), exit_zero=True)[0] == 2


def test_a_broken_archive_reports_what_came_before(tmp_path: Path) -> None:
    whole = gzip.compress((FAILED + os.urandom(100_000).hex()).encode(), mtime=0)
    path = write(tmp_path / "server.log.gz", whole[: len(whole) // 2])
    code, incidents, summary = objects(path)
    assert code == 2
    assert [item["root"]["message"] for item in incidents] == ["serde a of 3 is not naive"]
    assert [item["path"] for item in summary["skipped"]] == [path]
    assert summary["lines"] > 6


def test_only_skipped_files_are_a_usage_error(tmp_path: Path) -> None:
    write(tmp_path / "model.bin", b"\0\1\2\3" * 100)
    with pytest.raises(UsageError, match="no log found"):
        run(str(tmp_path))


def test_skipped_files_beside_a_log_are_no_failure(tmp_path: Path) -> None:
    write(tmp_path / "model.bin", b"\0\1\2\3" * 100)
    write(tmp_path / "server.log", HEALTHY)
    code, _, summary = objects(str(tmp_path))
    assert code == 0
    assert [item["path"] for item in summary["skipped"]] == [str(tmp_path / "model.bin")]


def test_a_sites_card_is_used(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    write(tmp_path / "rules" / "site-serde.toml", CARD)
    _, (incident,), summary = objects(write(tmp_path / "server.log", FAILED), rules=(str(tmp_path / "rules"),))
    assert (incident["card"], incident["fields"]) == ("site-serde", {"serde": "a", "total": "3"})
    assert (summary["by_card"], summary["by_severity"]) == ({"site-serde": 1}, {"critical": 1})


def test_a_bad_card_among_good_ones_is_told_and_hides_none(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    write(tmp_path / "rules" / "site-serde.toml", CARD)
    write(tmp_path / "rules" / "site-bad.toml", "title =")
    code, out, err = run(write(tmp_path / "server.log", FAILED), rules=(str(tmp_path / "rules"),))
    assert code == 1
    assert "LMCache: only the naive serde" in out
    assert "site-bad.toml" in err


def test_every_line_is_what_the_schema_says(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{name}.log", text)
        for name, text in {"a": FAILED, "b": REQUEST, "c": HEALTHY, "d": RUNNING}.items()
    ]
    _, text, _ = run(*paths, str(tmp_path / "missing.log"), format="jsonl")
    validator = Draft202012Validator(json_schema())
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        validator.validate(line)
    assert [line["kind"] for line in lines] == ["incident"] * 3 + ["summary"]


def test_the_summary_counts_what_was_read(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a.log", FAILED), write(tmp_path / "b.log", HEALTHY.encode() + b"caf\xe9\n")
    _, _, summary = objects(one, other)
    lines = FAILED.count("\n") + HEALTHY.count("\n") + 1
    sizes = os.path.getsize(one) + os.path.getsize(other)
    assert (summary["sources"], summary["lines"], summary["bytes"]) == (2, lines, sizes)
    assert (summary["undecodable_lines"], summary["truncated_lines"], summary["dropped_tracebacks"]) == (1, 0, 0)
    assert (summary["tracebacks"], summary["interrupted"]) == (1, False)
    assert summary["by_severity"] == {"critical": 1}


def test_the_summary_line_of_the_text(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", FAILED)
    last = run(path)[1].rstrip().splitlines()[-1]
    assert "1 source, 7 lines" in last
    assert "1 traceback, 1 critical" in last
    assert "No failure found in 1 source, 2 lines" in run(write(tmp_path / "healthy.log", HEALTHY))[1]


@pytest.mark.parametrize("style", ["text", "markdown", "jsonl"])
def test_every_format_tells_the_cause_and_the_place(tmp_path: Path, style: str) -> None:
    path = write(tmp_path / "server.log", FAILED)
    out = run(path, format=style)[1]
    assert "serde a of 3 is not naive" in out
    assert "server.log" in out


def test_each_source_is_judged_by_itself(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.log", FAILED) for name in "ab"]
    _, incidents, _ = objects(*paths)
    assert [item["source"] for item in incidents] == paths
    assert len({item["fingerprint"] for item in incidents}) == 1


def test_a_missing_line_end_loses_nothing(tmp_path: Path) -> None:
    _, incidents, summary = objects(write(tmp_path / "server.log", FAILED.rstrip("\n")))
    assert (len(incidents), summary["lines"]) == (1, 7)


def test_rotated_siblings_are_read_where_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "server.log", HEALTHY)
    write(tmp_path / "server.log.1", FAILED)
    write(tmp_path / "server.log.2.gz", gzip.compress(REQUEST.encode()))
    assert objects(path)[2]["sources"] == 1
    _, incidents, summary = objects(path, rotated=True)
    assert summary["sources"] == 3
    assert [Path(item["source"]).name for item in incidents] == ["server.log.2.gz", "server.log.1"]


def test_what_is_no_text_is_not_called_healthy(tmp_path: Path) -> None:
    """An archive within an archive, or a program: nothing was found because nothing could be read."""
    path = write(tmp_path / "double.log.gz", gzip.compress(gzip.compress(FAILED.encode() * 200)))
    code, _, problems = run(path)
    assert code == 2
    assert "not text" in problems


def test_a_card_directory_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        run(write(tmp_path / "a.log", HEALTHY), rules=(str(tmp_path / "nope"),))


def test_a_files_name_reaches_no_terminal_raw(tmp_path: Path) -> None:
    _, _, problems = run(str(tmp_path / "a\x1b[31m.log"))
    assert "\x1b" not in problems


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the shipped catalogue, empty."""
    monkeypatch.setattr("lmdiag.match.library.shipped_directory", lambda: str(tmp_path / "shipped"))
    (tmp_path / "shipped" / "catalog").mkdir(parents=True)
    return tmp_path / "shipped" / "catalog" / "catalog.bin"


CATALOGUES = {
    "missing": (None, "no catalogue can be read there"),
    "no catalogue": (b"rubbish", "the catalogue is damaged"),
    "another format": (b"lmdiag-catalog 99 5\n12345", "not a catalogue of format"),
    "empty": (b"", "the catalogue is damaged"),
}


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize(("data", "why"), CATALOGUES.values(), ids=CATALOGUES)
def test_a_catalogue_that_cannot_be_read_is_told_once_and_hides_nothing(
    tmp_path: Path, catalogue: Path, data: bytes | None, why: str, jobs: int
) -> None:
    if data is not None:
        catalogue.write_bytes(data)
    paths = [write(tmp_path / f"{name}.log", FAILED) for name in "abc"]
    code, out, err = run(*paths, jobs=jobs)
    assert (code, err.count("\n")) == (1, 1)
    assert out.count("serde a of 3 is not naive") >= 3
    assert why in err


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_catalogue_that_is_damaged_inside_is_told_once_and_hides_nothing(
    tmp_path: Path, catalogue: Path, jobs: int
) -> None:
    shipped = Path(shipped_directory(), "catalog", "catalog.bin").read_bytes()
    head = shipped.index(b"\n") + 1 + int(shipped.split(b"\n", 1)[0].split()[-1])
    catalogue.write_bytes(shipped[:head] + bytes(len(shipped) - head))
    paths = [write(tmp_path / f"{name}.log", FAILED) for name in "abc"]
    code, incidents, _ = objects(*paths, jobs=jobs)
    assert (code, len(incidents)) == (1, 3)
    err = run(*paths, jobs=jobs)[2]
    assert err.count("\n") == 1
    assert "the catalogue is damaged" in err


def test_a_healthy_log_is_not_told_of_a_damaged_catalogue(tmp_path: Path, catalogue: Path) -> None:
    catalogue.write_bytes(b"rubbish")
    code, _, err = run(write(tmp_path / "server.log", HEALTHY))
    assert (code, err) == (0, "")


UNUSED = (
    "lmdiag.catalog",
    "lmdiag.match.catalog",
    "lmdiag.match.raise_sites",
    "lmdiag.match.foreign",
    "lmdiag.diagnose.raised",
)
OF_A_FAILURE = [name for name in UNUSED[1:] if name != "lmdiag.match.foreign"]  # its frame says whose the error is
SCRIPT = f"""
import sys
from lmdiag.cli import main
code = main(["scan", *sys.argv[1:]])
print(code, *(name for name in {UNUSED} if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("log", "last"), [(HEALTHY, "0"), (FAILED, f"1 {' '.join(OF_A_FAILURE)}")], ids=["healthy", "failed"]
)
def test_a_healthy_log_costs_no_catalogue(tmp_path: Path, log: str, last: str) -> None:
    path = write(tmp_path / "server.log", log)
    done = subprocess.run([sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == last
