"""The lives of a server: how it starts, and a start that fails, in each process that says so."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

from benchmarks.failures import Failure, Raised, logged, traceback

_START = Path(__file__).with_name("server_start.txt")
_SERVING = "%% serving\n"
"""Divides what a server says until its weights are loaded from what it says when it is ready."""
_CORE_ENDED = (
    "Exception: WorkerProc initialization failed due to an exception in a background process. "
    "See stack trace for root cause."
)
_SERVER_ENDED = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
_FRAME = '  File "/opt/venv/lib/python3.12/site-packages/vllm/{}", line {}, in {}'
_ENGINE = (
    ("v1/engine/core.py", 1482, "run_engine_core", "engine_core = EngineCoreProc(*args, engine_index=rank, **kwargs)"),
    ("v1/engine/core.py", 1194, "__init__", "super().__init__(vllm_config, executor_class, log_stats)"),
    ("v1/engine/core.py", 144, "__init__", "self.model_executor = executor_class(vllm_config)"),
    ("v1/executor/multiproc_executor.py", 116, "__init__", "super().__init__(vllm_config)"),
    ("v1/executor/abstract.py", 126, "__init__", "self._init_executor()"),
    ("v1/executor/multiproc_executor.py", 215, "_init_executor", "self.workers = WorkerProc.wait_for_ready(unready)"),
    ("v1/executor/multiproc_executor.py", 815, "wait_for_ready", "raise error from None"),
)
_SERVER = (
    ("entrypoints/cli/main.py", 120, "main", "args.dispatch_function(args)"),
    ("entrypoints/cli/serve.py", 156, "cmd", "uvloop.run(run_server(args))"),
    ("entrypoints/launchers/api_server/entry.py", 177, "run_server", "await run_server_worker(address, sock, args)"),
    (
        "entrypoints/launchers/api_server/entry.py",
        61,
        "build_async_engine_client",
        "async with build(engine_args) as engine:",
    ),
    ("v1/engine/async_llm.py", 184, "__init__", "self.engine_core = EngineCoreClient.make_async_mp_client("),
    ("v1/engine/core_client.py", 167, "make_async_mp_client", "return AsyncMPClient(*client_args)"),
    (
        "v1/engine/core_client.py",
        682,
        "__init__",
        "with launch_core_engines(vllm_config, executor_class, log_stats) as",
    ),
    ("v1/engine/utils.py", 1351, "launch_core_engines", "wait_for_engine_startup(handshake, engines, config)"),
    ("v1/engine/utils.py", 1431, "wait_for_engine_startup", "raise error"),
)


@cache
def _parts() -> tuple[Template, Template]:
    loading, serving = _START.read_text(encoding="utf-8").split(_SERVING)
    return Template(loading), Template(serving)


def processes(first: int) -> dict[str, str]:
    """Return the process ids of a server, from its API server's on."""
    return {name: str(first + step) for name, step in (("api", 0), ("core", 66), ("worker", 137), ("second", 138))}


def start(stamp: str, pids: Mapping[str, str]) -> str:
    """Return what a server of two GPUs says until it serves."""
    loading, serving = _parts()
    return loading.substitute(pids, stamp=stamp) + serving.substitute(pids, stamp=stamp)


def failed_start(failure: Failure, stamp: str, pids: Mapping[str, str], chance: random.Random) -> tuple[str, Raised]:
    """Return a start that fails in both workers, with what each process says of it: about 20 KB; and the cause."""
    raised = Raised(failure.type, failure.message(chance), logged=True, chained=False)
    lines = ["WorkerProc failed to start.", *traceback(failure, raised.message, chance, chained=False)]
    workers = (f"(Worker_TP{rank} pid={pids[name]}) ERROR " for rank, name in enumerate(("worker", "second")))
    failed = "".join(logged(f"{worker}{stamp} [multiproc_executor.py:953] ", lines) for worker in workers)
    engine = _lines(_ENGINE, _CORE_ENDED)
    core = logged(
        f"(EngineCore pid={pids['core']}) ERROR {stamp} [core.py:1510] ", ["EngineCore failed to start.", *engine]
    )
    raw = "\n".join(["Process EngineCore:", *engine, *_lines(_SERVER, _SERVER_ENDED), ""])
    return _parts()[0].substitute(pids, stamp=stamp) + failed + core + raw, raised


def _lines(frames: tuple[tuple[str, int, str, str], ...], error: str) -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for file, line, function, code in frames:
        lines += [_FRAME.format(file, line, function), f"    {code}", f"    {'^' * len(code)}"]
    return [*lines, error]
