"""The transports that carry a log: each wraps the bytes of a plain log as the real tool writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

TIME = "2026-12-01T02:56:14.123456789Z"


def _lines(log: str) -> list[str]:
    return log.removesuffix("\n").split("\n")


def docker_json_file(log: str) -> str:
    """Docker's json-file driver cuts lines after 16 KiB."""
    rows = []
    for line in _lines(log):
        pieces = [line[start : start + 16384] for start in range(0, len(line), 16384)] or [""]
        pieces[-1] += "\n"
        rows += [json.dumps({"log": piece, "stream": "stdout", "time": TIME}) for piece in pieces]
    return "\n".join(rows) + "\n"


def cri(log: str, size: int = 120) -> str:
    """The CRI log of a kubelet, with partial lines; a tiny `size` cuts almost every line."""
    rows = []
    for line in _lines(log):
        pieces = [line[start : start + size] for start in range(0, len(line), size)] or [""]
        rows += [f"{TIME} stderr P {piece}" for piece in pieces[:-1]] + [f"{TIME} stderr F {pieces[-1]}"]
    return "\n".join(rows) + "\n"


def _each(prefix: str, end: str = "\n") -> Callable[[str], str]:
    return lambda log: "".join(prefix + line + end for line in _lines(log))


def coloured(log: str) -> str:
    """Colours around the level and the place, as on a terminal."""
    return "".join(line.replace("ERROR ", "\x1b[31mERROR\x1b[0m ", 1) + "\n" for line in _lines(log))


TRANSPORTS: dict[str, Callable[[str], str]] = {
    "docker json-file": docker_json_file,
    "CRI": lambda log: cri(log, 4096),
    "CRI with partial lines": cri,
    "compose": _each("vllm-1  | "),
    "journald short": _each("Aug 17 18:42:18 gpu7 vllm[8052]: "),
    "kubectl timestamps": _each(TIME + " "),
    "Ray": _each("(ServeReplica:default:LLM pid=4711) "),
    "coloured": coloured,
    "CRLF": _each("", "\r\n"),
}


def chunks(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """The bytes in pieces that end at the given offsets."""
    start = 0
    for cut in sorted(cuts):
        if start < cut < len(data):
            yield data[start:cut]
            start = cut
    yield data[start:]
