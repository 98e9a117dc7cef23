from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from catalog_samples import site
from test_catalog_commands import write

from lmdiag.cli import main

LAYERWISE = "layerwise MLA connector is not supported yet"
COMMAND = (sys.executable, "-m", "lmdiag", "catalog")
TIMEOUT = 60  # seconds; only a hanging process ever waits so long


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and problems."""
    code = main(["catalog", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


WRONG = {
    "no action": (),
    "an unknown action": ("look",),
    "no message": ("find",),
    "no id": ("show",),
    "one release": ("diff", "0.26.0"),
    "nowhere to build": ("build", "vllm"),
    "an unknown format": ("find", "x", "--format", "markdown"),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_usage_is_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["catalog", *arguments])
    captured = capsys.readouterr()
    assert (caught.value.code, captured.out) == (2, "")
    assert "usage: lmdiag catalog" in captured.err


REFUSED = {
    "an empty message": ("find", " "),
    "what is no id": ("show", LAYERWISE),
    "the beginning of many ids": ("show", "3"),
    "an unknown release": ("diff", "0.26.0", "0.26.77"),
    "the newer first": ("diff", "0.26.0", "0.25.0"),
    "an unknown project": ("diff", "1.0", "2.0", "--project", "transformers"),
    "nothing to build from": ("build", "--into", "x"),
    "a directory that is not there": ("versions", "--rules", "/nowhere"),
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_answered_is_2_and_one_line(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("lmdiag: ")


@pytest.mark.parametrize("arguments", [("find", "good", "morning"), ("show", "0000000000")])
def test_what_is_not_there_is_1(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)


def test_the_shipped_catalogue_knows_where_the_mla_check_stood(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "find", "ValueError:", LAYERWISE, "--vllm", "0.26.0")
    assert (code, err) == (0, "")
    assert "vllm_v1_adapter.py:508 in _init_lmcache_engine\n" in out


def test_each_action_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "find", LAYERWISE, "--lmcache", "0.3.9", "--format", "jsonl")[1])
    assert (found["kind"], found["site"]["project"]) == ("match", "lmcache")
    assert json.loads(run(capsys, "show", found["id"], "--format", "jsonl")[1])["message"] == LAYERWISE
    releases = [json.loads(line) for line in run(capsys, "versions", "--format", "jsonl")[1].splitlines()]
    assert {"vllm 0.26.0", "lmcache 0.5.6"} <= {f"{item['project']} {item['version']}" for item in releases}
    lines = run(capsys, "diff", "0.25.0", "0.26.0", "--path", "vllm/config/", "--format", "jsonl")[1].splitlines()
    head, *rows = map(json.loads, lines)
    assert (head["kind"], head["changes"], {row["kind"] for row in rows}) == ("diff", len(rows), {"change"})


def test_a_diff_with_its_assertions(capsys: pytest.CaptureFixture[str]) -> None:
    few = run(capsys, "diff", "0.25.0", "0.26.0", "--path", "vllm/v1/")[1]
    all_ = run(capsys, "diff", "0.25.0", "0.26.0", "--path", "vllm/v1/", "--assertions")[1]
    assert "--assertions lists them too" in few
    assert "--assertions" not in all_
    assert len(all_) > len(few)


def test_the_message_comes_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{LAYERWISE}\n"))
    assert LAYERWISE in run(capsys, "find", "-")[1]


def test_an_own_catalogue_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = write(tmp_path / "own", {"own 1.0": [site("No device of this kind was found here", file="own/a.py")]})
    assert "own/a.py:10 in check" in run(capsys, "find", "No device of this kind was found here", "--rules", rules)[1]


def test_bytes_that_are_no_text_are_no_crash() -> None:
    done = subprocess.run([*COMMAND, "find", "-"], input=b"caf\xff\n", capture_output=True, timeout=TIMEOUT, check=False, env=os.environ | {"PYTHONUTF8": "1"})  # fmt: skip
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)


def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*COMMAND, "versions"], stdout=writer, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
