from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.model import Line
from lmdiag.parse.logical import Logical, LogicalLines

TIME = "2026-12-01T02:56:14.123456789Z"
RECORD = "(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1584] x y"


def logical(*texts: str, max_cut: int = 256) -> list[Logical]:
    lines = LogicalLines("s", max_cut=max_cut)
    found = [one for number, text in enumerate(texts, 1) for one in lines.feed(Line("s", number, 0, text))]
    return [*found, *lines.close()]


def texts_of(found: list[Logical]) -> list[str]:
    return [one.prefixed.text for one in found]


def docker(text: str, **more: str) -> str:
    return json.dumps({"log": text, "stream": "stderr", "time": TIME, **more})


WHOLE = {
    "plain": [RECORD],
    "coloured": ["\x1b[0;36m(EngineCore pid=7)\x1b[0;0m \x1b[31mERROR\x1b[0m 12-01 02:00:00 [core.py:1584] x y"],
    "CRI": [f"{TIME} stderr F {RECORD}"],
    "CRI, cut inside of the prefix": [f"{TIME} stderr P {RECORD[:9]}", f"{TIME} stderr F {RECORD[9:]}"],
    "CRI, cut three times": [f"{TIME} stderr P {RECORD[:9]}", f"{TIME} stderr P {RECORD[9:30]}", f"{TIME} stderr F {RECORD[30:]}"],
    "CRI, never finished": [f"{TIME} stderr P {RECORD}"],
    "docker": [docker(RECORD + "\r\n")],
    "docker, cut": [docker(RECORD[:30]), docker(RECORD[30:] + "\n")],
    "docker, never finished": [docker(RECORD)],
    "docker in CRI": [f"{TIME} stderr F " + docker(RECORD + "\n")],
    "docker in CRI, cut": [f"{TIME} stderr P " + docker(RECORD + "\n")[:40], f"{TIME} stderr F " + docker(RECORD + "\n")[40:]],
    "compose in docker": [docker(f"vllm-1  | {RECORD}\n")],
    "CRI in Loki": [json.dumps({"line": f"{TIME} stderr F {RECORD}"})],
    "colours in docker": [docker("\x1b[31m" + RECORD + "\x1b[0m\n")],
    "behind a progress bar": ["\r50%|█████     | 1/2\r" + RECORD],
}  # fmt: skip


@pytest.mark.parametrize("lines", WHOLE.values(), ids=WHOLE)
def test_a_record_is_the_same_through_every_container(lines: list[str]) -> None:
    prefixed = logical(*lines)[-1].prefixed
    assert (prefixed.process, prefixed.pid, prefixed.text) == ("EngineCore", 7, "x y")
    assert prefixed.record is not None
    assert prefixed.record.level == "ERROR"


def test_a_joined_line_ends_on_its_last_piece() -> None:
    (found,) = logical(f"{TIME} stderr P {RECORD[:9]}", f"{TIME} stderr F {RECORD[9:]}")
    assert found.line.number == 2


def test_pieces_of_two_pods_are_joined_apart() -> None:
    found = logical(
        docker("ERROR 12-01 02:00:00 [core.py:1] a", container_name="one"),
        docker("ERROR 12-01 02:00:00 [core.py:1] c", container_name="two"),
        docker("b\n", container_name="one"),
        docker("d\n", container_name="two"),
    )
    assert texts_of(found) == ["ab", "cd"]


def test_the_bound_on_cut_lines_holds() -> None:
    """What waits beyond the bound gives way; the newest is joined still."""
    cut = [docker("x", container_name=str(number)) for number in range(9)]
    assert texts_of(logical(*cut, docker("y\n", container_name="8"), max_cut=2))[0] == "xy"


def test_a_json_record_gives_its_lines_and_an_end() -> None:
    found = logical(json.dumps({"levelname": "ERROR", "name": "vllm", "message": "failed", "exc_info": "a\nb"}))
    assert [(one.prefixed.text, one.ends_record) for one in found] == [("failed", False), ("a", False), ("b", True)]
    assert {one.prefixed.record for one in found} == {found[0].prefixed.record}


def test_a_fake_record_inside_a_json_record_stays_text() -> None:
    found = logical(json.dumps({"levelname": "INFO", "name": "vllm", "message": f"prompt:\n{RECORD}"}))
    assert {one.prefixed.record and one.prefixed.record.level for one in found} == {"INFO"}


def test_two_writes_in_one_line_are_two() -> None:
    assert texts_of(logical("    super().__init__(a)" + RECORD)) == ["    super().__init__(a)", "x y"]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"))))
@settings(deadline=None)
def test_any_lines_are_survived(texts: list[str]) -> None:
    numbers = [one.line.number for one in logical(*texts)]
    assert numbers == sorted(numbers)


@given(st.lists(st.integers(0, 62), max_size=5))
@settings(deadline=None)
def test_where_a_container_cuts_does_not_matter(cuts: list[int]) -> None:
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(RECORD)}), len(RECORD)]
    pieces = [RECORD[start:end] for start, end in itertools.pairwise(edges)]
    lines = [f"{TIME} stderr {'F' if piece is pieces[-1] else 'P'} {piece}" for piece in pieces]
    assert [one.prefixed for one in logical(*lines)] == [one.prefixed for one in logical(RECORD)]
