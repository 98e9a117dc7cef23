"""Where a log is begun at the first start."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lmdiag.read import start
from lmdiag.read.start import start_offset

PLAIN = "(APIServer pid=1) INFO 12-01 03:18:27 [utils.py:253] "
COLOUR = "\x1b[0;36m(APIServer pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m12-01 03:01:16\x1b[0m \x1b[90m[utils.py:286]\x1b[0m "
CRI = "2026-12-01T03:18:27.1Z stdout F " + PLAIN
BANNER = ("", "       █     █     █▄   ▄█", " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0", "  █▄█▀ █   model   /srv/models/mla")
OLD_BANNER = ("vLLM API server version 0.12.0",)
ARGUMENTS = "non-default args: {'model_tag': '/srv/models/mla', 'port': 8355}"
READY = "Application startup complete."


def docker(line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-12-01T03:18:27Z"})


def json_record(line: str) -> str:
    return json.dumps({"level": "INFO", "name": "vllm", "message": line.removeprefix(PLAIN)})


def put(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "server.log"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return str(path)


def began(path: str, where: str = "life", boot: float | None = None) -> int:
    """The number of the line at which it begins, and whether that is the first of a line."""
    offset, before = start_offset(path, where, boot)
    data = Path(path).read_bytes()
    assert offset == 0 or data[offset - 1 : offset] == b"\n"
    assert before == data[:offset].count(b"\n")
    return before


def life(prefix: str, banner: tuple[str, ...]) -> list[str]:
    return [*(prefix + line for line in banner), prefix + ARGUMENTS, prefix + "Using max model len 256"]


@pytest.mark.parametrize("banner", [BANNER, OLD_BANNER, ()], ids=["art", "old", "none"])
@pytest.mark.parametrize("prefix", [PLAIN, COLOUR, CRI, ""], ids=["plain", "colour", "cri", "bare"])
def test_the_last_life_begins_with_its_first_line(tmp_path: Path, prefix: str, banner: tuple[str, ...]) -> None:
    one = [*life(prefix, banner), prefix + READY, "INFO: GET / 200"]
    path = put(tmp_path, "before", *one, *one)
    expected = 1 + len(one)
    if prefix == "" and banner == BANNER:
        expected += 2  # without a prefix the lines above the version are no more than blanks and blocks
    assert began(path) == expected


@pytest.mark.parametrize("wrap", [docker, json_record])
def test_lines_in_json(tmp_path: Path, wrap: object) -> None:
    assert callable(wrap)
    one = [wrap(line) for line in [*life(PLAIN, BANNER), PLAIN + READY]]
    begun = began(put(tmp_path, *one, *one))
    assert len(one) <= begun <= len(one) + 2


def test_the_shell_line_belongs_to_the_start(tmp_path: Path) -> None:
    path = put(tmp_path, *life(PLAIN, BANNER), READY, "$ CUDA_VISIBLE_DEVICES=0 vllm serve x", "a warning", *life(PLAIN, BANNER))
    assert began(path) == 7


@pytest.mark.parametrize("between", [["x"] * 201, [PLAIN + READY], ["ERROR 12-01 [core.py:1] failed"]])
def test_what_parts_two_lives(tmp_path: Path, between: list[str]) -> None:
    one = life(PLAIN, OLD_BANNER)
    assert began(put(tmp_path, *one, *between, *one)) == len(one) + len(between)


def test_marks_with_other_lines_between_are_one_start(tmp_path: Path) -> None:
    path = put(tmp_path, "x", PLAIN + OLD_BANNER[0], *["warning"] * 150, PLAIN + ARGUMENTS, *["x"] * 1000)
    assert began(path) == 1


def test_a_clients_words_are_no_start(tmp_path: Path) -> None:
    talk = PLAIN + "Received request cmpl-1: prompt: 'what is vLLM API server version 0.12.0? non-default args: {}'"
    assert began(put(tmp_path, "x", *life(PLAIN, OLD_BANNER), READY, talk)) == 1


def test_a_start_far_back_is_found_across_blocks(tmp_path: Path) -> None:
    filler = ["INFO 12-01 03:18:27 [loggers.py:1] Engine 000: Avg prompt throughput"] * 60_000
    assert began(put(tmp_path, "x", *life(PLAIN, BANNER), *filler)) == 1


@pytest.mark.parametrize("shift", range(0, 140, 7))
def test_a_start_on_the_border_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    monkeypatch.setattr(start, "_BLOCK", 256)
    assert began(put(tmp_path, "x", PLAIN + ARGUMENTS, "y" * shift, *["z" * 60] * 20)) == 1


def test_without_a_start_it_begins_some_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, *["line"] * 100)
    assert began(path) == 0
    monkeypatch.setattr(start, "_CONTEXT", 52)
    assert began(path) == 89


def test_only_so_much_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_SEARCHED", 1000)
    monkeypatch.setattr(start, "_CONTEXT", 52)
    path = put(tmp_path, PLAIN + ARGUMENTS, *["line"] * 400)
    offset, lines = start_offset(path, "life")
    assert (os.path.getsize(path) - offset, lines) == (55, 0)  # not counted so far in


def test_start_and_end(tmp_path: Path) -> None:
    path = put(tmp_path, *life(PLAIN, BANNER))
    assert began(path, "start") == 0
    assert began(path, "end") == 6
    with open(path, "ab") as file:
        file.write(b"unfinished")
    assert began(path, "end") == 6


def test_boot(tmp_path: Path) -> None:
    path = put(tmp_path, "x", *life(PLAIN, BANNER))
    os.utime(path, (5000, 5000))
    assert began(path, "boot", 6000.0) == 7
    assert began(path, "boot", 4000.0) == 1
    assert began(path, "boot") == 1


def test_a_file_that_cannot_be_read_or_is_empty(tmp_path: Path) -> None:
    assert start_offset(str(tmp_path / "gone.log"), "life") == (0, 0)
    for where in ("start", "end", "life", "boot"):
        assert start_offset(put(tmp_path), where) == (0, 0)
