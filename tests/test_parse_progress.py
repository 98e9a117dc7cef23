from __future__ import annotations

import pytest

from lmdiag.parse.progress import ALL, Progress, Sign, read_sign

TAIL = "GPU KV cache usage: 20.0%, Prefix cache hit rate: 0.8%"


def statistics(prompt: float, generation: float, rest: str, engine: str = "Engine 000: ") -> str:
    return f"{engine}Avg prompt throughput: {prompt:.1f} tokens/s, Avg generation throughput: {generation:.1f} tokens/s, {rest}"


STALLED = statistics(0, 0, f"Running: 8 reqs, Waiting: 0 reqs, {TAIL}")
MOVING = statistics(0, 3.1, f"Running: 8 reqs, Waiting: 0 reqs, {TAIL}")
SIGNS = {
    "V1": ("loggers.py", STALLED, Sign("stalled", "0")),
    "V1 at DEBUG": ("v1/metrics/loggers.py", STALLED, Sign("stalled", "0")),
    "JSON": ("vllm.v1.metrics.loggers", STALLED, Sign("stalled", "0")),
    "one of several engines": ("loggers.py", statistics(0, 0, "Running: 0 reqs, Waiting: 2 reqs, x", "Engine 012: "), Sign("stalled", "12")),
    "several engines": ("loggers.py", statistics(0, 0, "Running: 0 reqs, Waiting: 2 reqs, Deferred: 2 reqs, x", "8 Engines Aggregated: "), Sign("stalled", ALL)),
    "preempted": ("loggers.py", statistics(0, 0, f"Running: 1 reqs, Waiting: 0 reqs, Preemptions: 3, {TAIL}"), Sign("stalled", "0")),
    "on CPU": ("loggers.py", statistics(0, 0, "Running: 1 reqs, Waiting: 0 reqs, CPU KV cache usage: 0.0%"), Sign("stalled", "0")),
    "V0": ("metrics.py", statistics(0, 0, "Running: 0 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.0%, CPU KV cache usage: 0.0%.", ""), Sign("stalled", "0")),
    "V0, swapped": ("metrics.py", statistics(0, 0, "Running: 0 reqs, Swapped: 1 reqs, Pending: 0 reqs, x", ""), Sign("stalled", "0")),
    "the oldest": ("llm_engine.py", statistics(0, 0, "Running: 3 reqs, Swapped: 0 reqs, Pending: 0 reqs, x", ""), Sign("stalled", "0")),
    "decoding": ("loggers.py", MOVING, Sign("moving", "0")),
    "reading prompts": ("loggers.py", statistics(9, 0, "Running: 1 reqs, Waiting: 0 reqs, x"), Sign("moving", "0")),
    "idle": ("loggers.py", statistics(0, 0, "Running: 0 reqs, Waiting: 0 reqs, x"), Sign("moving", "0")),
    "V0, idle": ("metrics.py", statistics(0, 0, "Running: 0 reqs, Swapped: 0 reqs, Pending: 0 reqs, x", ""), Sign("moving", "0")),
    "0.34": ("shm_broadcast.py", "No available shared memory broadcast block found in 60 seconds. This typically happens when", Sign("broadcast", "0", 60)),
    "0.10": ("shm_broadcast.py", "No available shared memory broadcast block foundin 60 second.", Sign("broadcast", "0", 60)),
    "0.6": ("shm_broadcast.py", "No available block found in 5 second. ", Sign("broadcast", "0", 5)),
    "a request": ("async_llm.py", "Added request cmpl-1.", Sign("arrival", ALL)),
    "the server has come up": ("", "Application startup complete.", Sign("moving", ALL)),
    "elsewhere": ("serving_chat.py", STALLED, None),
    "an arrival elsewhere": ("logger.py", "Added request cmpl-1.", None),
    "a broadcast elsewhere": ("logger.py", "No available block found in 5 second. ", None),
    "the cache's size": ("loggers.py", "Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 5", None),
    "inside of a text": ("loggers.py", f"x {STALLED}", None),
}  # fmt: skip


@pytest.mark.parametrize(("file", "text", "sign"), SIGNS.values(), ids=SIGNS)
def test_what_a_line_tells(file: str, text: str, sign: Sign | None) -> None:
    assert read_sign(file, text, "EngineCore") == sign


@pytest.mark.parametrize(
    ("process", "engine"), [("EngineCore", "0"), ("EngineCore_DP3", "3"), (None, "0"), ("Worker_TP1", None)]
)
def test_a_broadcast_is_of_the_engine_that_waits(process: str | None, engine: str | None) -> None:
    """A worker that waits may just have nothing to do."""
    sign = read_sign("shm_broadcast.py", "No available block found in 60 second.", process)
    assert (sign and sign.engine) == engine


def wants(progress: Progress, text: str, stream: str = "", file: str = "loggers.py") -> bool:
    return progress.wants(stream, file, text, None)


def test_a_healthy_line_is_wanted_only_behind_a_stalled_one() -> None:
    progress = Progress()
    assert [wants(progress, text) for text in (MOVING, STALLED, STALLED, MOVING, MOVING)] == [0, 1, 1, 1, 0]
    assert not progress.stopped


def test_requests_are_wanted_only_in_a_stall() -> None:
    progress = Progress()
    found = [wants(progress, "Added request x", file="async_llm.py")]
    found += [wants(progress, STALLED), wants(progress, "Added request x", file="async_llm.py")]
    assert found == [False, True, True]


def test_engines_and_containers_are_told_apart() -> None:
    progress = Progress()
    other = MOVING.replace("Engine 000", "Engine 001")
    assert wants(progress, STALLED, "a")
    assert wants(progress, other, "a")
    assert wants(progress, MOVING, "b")
    assert progress.stopped == {("a", "0")}
