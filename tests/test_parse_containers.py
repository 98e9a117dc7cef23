from __future__ import annotations

import pytest

from lmdiag.parse.containers import CUT, Unwrapper

RECORD = "(EngineCore_DP0 pid=57) ERROR 11-18 13:44:09 [core.py:708] text"
FRAME = '  File "/a/x.py", line 1, in f'
# Container's text in front of a line, and a name that must be part of the stream's.
PREFIXES = {
    "docker compose": ("vllm-1  | ", "vllm-1"),
    "docker compose, padded": ("vllm-server  | ", "vllm-server"),
    "docker compose in brackets": ("[llm]        | ", "llm"),
    "docker logs -t": ("2025-08-21T15:04:45.450656877Z ", ""),
    "kubectl logs --timestamps with an offset": ("2025-08-21T15:04:45.450656877+02:00 ", ""),
    "kubectl --prefix": ("[pod/vllm-0/vllm] ", "pod/vllm-0/vllm"),
    "kubectl --prefix --timestamps": ("[pod/vllm-0/vllm] 2025-08-21T15:04:45.450656877Z ", "pod/vllm-0/vllm"),
    "journald short": ("Aug 17 18:42:18 host vllm[8052]: ", "vllm[8052]"),
    "syslog, one-digit day": ("Sep  5 11:48:04 host bash[20364]: ", "bash[20364]"),
    "journald short-iso": ("2025-08-17T18:42:18+0200 gpu7 vllm[8052]: ", "vllm[8052]"),
    "Docker Desktop": ("2025-08-28 13:23:07 ", ""),
    "Docker Desktop with a bar": ("2025-04-29 22:14:28.456 | ", ""),
    "Buildkite": ("[2026-02-24T20:21:58Z] ", ""),
    "Buildkite, indented": ("  | [2025-03-10T15:07:20Z] ", ""),
    "GitHub Actions": ("2026-01-01T00:00:00.0000000Z ", ""),
    "GitHub Actions, an error": ("2026-01-01T00:00:00.0000000Z ##[error]", ""),
    "FastChat": ("2024-04-27 10:13:05 | ERROR | stderr | ", ""),
    "gpustack": ("2025-06-19T11:30:14+08:00 - gpustack.worker… - INFO - ", ""),
    "lemonade": ("2026-06-09 14:01:54.604 [Info] (Process) ", ""),
    "a cloud's console": ("2025-07-17 11:38:23.679825  >> ", ""),
    "unsloth": ("vLLM STDOUT: ", ""),
    "torchrun": ("[rank0]: ", "rank0"),
    "torchrun without a blank": ("[rank1]:", "rank1"),
    "torchrun without its bracket": ("rank0]: ", "rank0"),
    "torch.distributed.launch": ("[default3]:", "default3"),
    "quoted": ("> ", ""),
    "quoted twice": ("> > ", ""),
    "compose around timestamps": ("vllm-1  | 2025-08-21T15:04:45.4Z ", "vllm-1"),
    "journald around compose": ("Aug 17 18:42:18 host compose[81]: vllm-1  | ", "vllm-1"),
}  # fmt: skip


@pytest.mark.parametrize(("prefix", "name"), PREFIXES.values(), ids=PREFIXES)
def test_a_container_is_taken_off_a_record(prefix: str, name: str) -> None:
    stream, text = Unwrapper().unwrap(prefix + RECORD)
    assert text == RECORD
    assert name in stream
    assert bool(stream) == bool(name)


NO_BLANK = (
    "torchrun without a blank",
    "torch.distributed.launch",
)  # one blank of an indented line could be the container's as well


@pytest.mark.parametrize("name", [name for name in PREFIXES if name not in NO_BLANK])
def test_the_indentation_of_a_frame_is_kept(name: str) -> None:
    assert Unwrapper().unwrap(PREFIXES[name][0] + FRAME)[1] == FRAME


PLAIN = {
    "a record": RECORD,
    "a record without a process": "ERROR 05-06 01:55:26 [core.py:383] text",
    "a frame": FRAME,
    "source code": "    raise ValueError(",
    "an exception": "ValueError: Please use a: b | c",
    "an exception's message with a bar": "RuntimeError: a | b",
    "uvicorn": "INFO:     Started server process [1]",
    "uvicorn's error": "ERROR:    Exception in ASGI application",
    "LMCache": "[2026-02-24 23:14:43,998] LMCache INFO: text (file.py:172:lmcache.v1.cache_engine)",
    "Ray's own record": "2025-01-22 14:32:19,671\tINFO worker.py:1540 -- text",
    "a traceback": "Traceback (most recent call last):",
    "an exception group's frame": '  |   File "/a/x.py", line 1, in f',
    "torch's C++ warning": "[W409 11:42:27.77 ProcessGroupNCCL.cpp:1250] Warning: x",
    "empty": "",
    "a list item": "   - For Hugging Face models: x",
    "a relation": "During handling of the above exception, another exception occurred:",
}  # fmt: skip


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_what_no_container_wrote_is_left_alone(text: str) -> None:
    assert Unwrapper().unwrap(text) == ("", text)


@pytest.mark.parametrize("flag", ["F", "P"])
@pytest.mark.parametrize("out", ["stdout", "stderr"])
def test_a_container_that_cuts_lines_is_left_for_the_joining(out: str, flag: str) -> None:
    """What is inside may be a piece, so nothing inside is taken off before it is joined; blanks count too."""
    line = f"2024-11-26T09:29:11.402118077Z {out} {flag}   vllm-1  | x"
    assert Unwrapper().unwrap(line) == ("", line)
    hit = CUT.match(line)
    assert hit is not None
    assert (hit.group(1), line[hit.end() :]) == (flag, "  vllm-1  | x")


def test_an_empty_line_of_cri() -> None:
    hit = CUT.match("2024-11-26T09:29:11.402118077Z stderr F ")
    assert hit is not None
    assert hit.end() == len("2024-11-26T09:29:11.402118077Z stderr F ")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("vllm-1  | ", "vllm-2  | "),
        ("[pod/vllm-0/vllm] ", "[pod/vllm-1/vllm] "),
        ("Aug 17 18:42:18 host vllm[1]: ", "Aug 17 18:42:18 host vllm[2]: "),
        ("[rank0]: ", "[rank1]: "),
        ("vllm-decode-5 vllm ", "vllm-prefill-6 vllm "),
        ("0: ", "1: "),
    ],
    ids=["compose", "pods", "units", "ranks", "stern", "srun"],
)
def test_two_containers_never_mix(one: str, other: str) -> None:
    unwrapper = Unwrapper()
    first, second = unwrapper.unwrap(one + RECORD), unwrapper.unwrap(other + RECORD)
    assert first[1] == second[1] == RECORD
    assert first[0] != second[0]


@pytest.mark.parametrize(
    "label", ["vllm-prefill-645-qxv6j vllm ", "0: ", " 3: ", "node01: "], ids=["stern", "srun", "srun, padded", "pdsh"]
)
def test_a_label_is_known_once_it_stood_before_a_certain_line(label: str) -> None:
    """In front of an exception line alone it could be a part of the message."""
    unwrapper = Unwrapper()
    stream = unwrapper.unwrap(label + RECORD)[0]
    assert stream
    assert unwrapper.unwrap(label + "ValueError: x") == (stream, "ValueError: x")
    assert unwrapper.unwrap("ValueError: x") == ("", "ValueError: x")


def test_an_unknown_label_is_text() -> None:
    assert Unwrapper().unwrap("node01: ValueError: x")[1] == "node01: ValueError: x"
