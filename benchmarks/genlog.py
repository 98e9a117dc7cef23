"""Writes a large log of a serving vLLM, deterministically: statistics, access lines, prompts, some failing requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

_WORDS = (
    "the",
    "model",
    "of",
    "attention",
    "cache",
    "token",
    "request",
    "please",
    "explain",
    "write",
    "code",
    "answer",
)
_TRACEBACK = (
    "Error in preprocessing prompt inputs",
    "Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.12/site-packages/vllm/entrypoints/openai/serving_chat.py", line 239, in create',
    "    prompts = await self.preprocess(",
    "              ^^^^^^^^^^^^^^^^^^^^^^",
    "ValueError: This model's maximum context length is 8192 tokens. However, your request has {tokens} input tokens.",
)


def write_log(path: Path, size: int, *, seed: int = 1, traceback_every: int = 10_000_000) -> None:
    """Write about `size` bytes to `path`: one request's traceback for every `traceback_every` bytes, one fatal at the end."""
    written = since = 0
    chance = random.Random(seed)  # noqa: S311 - reproducible text, no secret
    with path.open("w", encoding="utf-8", newline="") as file:
        while written < size:
            lines = "".join(_line(chance) for _ in range(500))
            if since > traceback_every:
                lines, since = lines + _failed_request(chance), 0
            written += file.write(lines)
            since += len(lines)
        file.write("".join(_fatal()))


def _line(chance: random.Random) -> str:
    kind = chance.random()
    client = f"10.0.{chance.randrange(8)}.{chance.randrange(256)}:{chance.randrange(30000, 65000)}"
    if kind < 0.42:
        return f'(APIServer pid=1234) INFO:     {client} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    head = "(APIServer pid=1234) INFO 08-14 10:00:00 "
    if kind < 0.48:
        prompt = " ".join(chance.choices(_WORDS, k=chance.randrange(20, 200)))
        return f"{head}[logger.py:40] Received request chatcmpl-{chance.getrandbits(128):032x}: prompt: {prompt!r}, params: x\n"
    if kind < 0.97:
        return (
            f"{head}[loggers.py:123] Engine {chance.randrange(8):03d}: Avg prompt throughput: {chance.random() * 9000:.1f} "
            f"tokens/s, Avg generation throughput: {chance.random() * 3000:.1f} tokens/s, Running: "
            f"{chance.randrange(256)} reqs, Waiting: {chance.randrange(64)} reqs, GPU KV cache usage: 41.0%\n"
        )
    return f"(EngineCore pid=1300) WARNING 08-14 10:00:00 [scheduler.py:{chance.randrange(900)}] preempted {chance.random()}\n"


def _failed_request(chance: random.Random) -> str:
    prefix = "(APIServer pid=1234) ERROR 08-14 10:00:00 [serving_chat.py:264] "
    return "".join(prefix + line.format(tokens=chance.randrange(9000, 90000)) + "\n" for line in _TRACEBACK)


def _fatal() -> Iterator[str]:
    yield "(EngineCore pid=1300) ERROR 08-14 11:00:00 [core.py:1584] EngineCore encountered a fatal error.\n"
    for line in (_TRACEBACK[1], _TRACEBACK[2], "ValueError: the last line of the log"):
        yield f"(EngineCore pid=1300) ERROR 08-14 11:00:00 [core.py:1584] {line}\n"
