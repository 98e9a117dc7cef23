"""What a vLLM says while it serves: statistics, access lines, requests with their prompts, warnings, progress bars."""

from __future__ import annotations

import random
from collections.abc import Sequence

STAMP = "@@-@@ @@:@@:@@"
"""Stands where a record has its time: blocks are written many times, each time with another one."""
MARK = "~~~~"
"""Stands in the ids of requests, for the same reason."""
QUOTED = "he wrote: "
"""Goes before an error that a prompt quotes, so that these can be counted."""
_PLEASE = (
    "please explain how the city grew and which river it lies on then write a short list of its museums with one line each "
    "about what they show in summer do not use more than ninety words answer in plain text and say where a number came from"
)
_API = "(APIServer pid=1234) INFO"
_QUOTES = (
    "I get an Error",
    "why TypeError: 'int' object is not callable",
    "ERROR 08-14 10:00:00 [core.py:718] ",
    'Traceback (most recent call last):\\n  File \\"a.py\\", line 3, in f\\nValueError: foo',
)
_PARAMS = (
    "SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, temperature={:.1f}, "
    "top_p=1.0, top_k=0, min_p=0.0, seed=None, stop=[], max_tokens={}, skip_special_tokens=True), "
    "prompt_token_ids: None, lora_request: None."
)


class Chatter:
    """Makes lines, by the mix of a busy server: 48 % engine, 42 % access, 6 % requests, 3 % warnings, 1 % bars."""

    def __init__(self, chance: random.Random, messages: Sequence[str]) -> None:
        self._chance = chance
        self._messages = messages
        self._text = " ".join(chance.choices(_PLEASE.split(), k=40_000))
        self._kinds = (self._statistics, self._added, self._access, self._request, self._warning, self._bar)

    def block(self, size: int) -> bytes:
        """Return whole lines of at least `size` bytes."""
        lines, length = list[str](), 0
        while length < size:
            kind = self._chance.choices(self._kinds, (24, 24, 42, 6, 3, 1))[0]
            lines.append(kind())
            length += len(lines[-1])
        return "".join(lines).encode()

    def _access(self) -> str:
        below = self._chance.randrange
        status = "400 Bad Request" if below(50) == 0 else "200 OK"
        client = f"10.0.{below(8)}.{below(256)}:{below(30000, 65000)}"
        return f'{_API}:     {client} - "POST /v1/chat/completions HTTP/1.1" {status}\n'

    def _statistics(self) -> str:
        below, share = self._chance.randrange, self._chance.random
        return (
            f"{_API} {STAMP} [loggers.py:123] Engine {below(8):03d}: Avg prompt throughput: {9000 * share():.1f} tokens/s, "
            f"Avg generation throughput: {3000 * share():.1f} tokens/s, Running: {below(256)} reqs, Waiting: {below(64)} "
            f"reqs, GPU KV cache usage: {100 * share():.1f}%, Prefix cache hit rate: {100 * share():.1f}%\n"
        )

    def _id(self) -> str:
        return f"chatcmpl-{MARK}{self._chance.getrandbits(112):028x}"

    def _added(self) -> str:
        return f"{_API} {STAMP} [async_llm.py:587] Added request {self._id()}.\n"

    def _request(self) -> str:
        params = _PARAMS.format(self._chance.random(), self._chance.randrange(1, 4096))
        return f"{_API} {STAMP} [logger.py:40] Received request {self._id()}: prompt: '{self._prompt()}', params: {params}\n"

    def _prompt(self) -> str:
        """A prompt of 1 to 8 KB as repr shows it; 2 % quote an error, which is none of this server."""
        length = self._chance.randrange(1000, 8000)
        start = self._chance.randrange(len(self._text) - length)
        prompt = self._text[start : start + length].replace(" then ", "\\n\\n", 3)
        if self._chance.random() >= 0.02:
            return prompt
        message = repr(self._chance.choice(self._messages))[1:-1]
        place, quote = self._chance.randrange(length), self._chance.choice((*_QUOTES, f"ValueError: {message}"))
        return f"{prompt[:place]} {QUOTED}{quote} {prompt[place:]}"

    def _warning(self) -> str:
        tokens, line = self._chance.randrange(4000, 9000), self._chance.randrange(100, 900)
        what = f"Input prompt ({tokens} tokens) is too long and exceeds limit of 4096"
        return f"(EngineCore pid=1300) WARNING {STAMP} [scheduler.py:{line}] {what}\n"

    def _bar(self) -> str:
        done = self._chance.randrange(1, 9)
        return f"\rLoading safetensors checkpoint shards:  {done * 11}% Completed | {done}/9 [00:0{done}<00:02,  1.30it/s]\n"
