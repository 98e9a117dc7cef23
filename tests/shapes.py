"""Logs in the shapes that vLLM, LMCache, Python and the transports write, and what the cause in each is."""

from __future__ import annotations

from typing import NamedTuple

NO_MEMORY = "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."


class Shape(NamedTuple):
    """One log and the roots that must be reported, as (type without module, message)."""

    name: str
    log: str
    roots: tuple[tuple[str | None, str], ...]


def raised(prefix: str, kind: str, message: str, end: str = "\n") -> str:
    """A short traceback with `prefix` in front of each line."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 699, in run_engine_core',
        "    engine_core = EngineCoreProc(*args, **kwargs)",
        "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/core/kv_cache_utils.py", line 612, in check_memory',
        "    raise ValueError(",
        *f"{kind}: {message}".split("\n"),
    ]
    return "".join(prefix + line + end for line in lines)


_CORE = "ERROR 05-06 01:55:26 [core.py:383] "
_TAGGED = "(EngineCore_DP0 pid=79) ERROR 12-01 02:00:00 [core.py:1584] "

SHAPES = (
    Shape("prefix of 0.6, without a bracket", raised("ERROR 02-19 18:44:46 engine.py:389] ", "ValueError", NO_MEMORY), (("ValueError", NO_MEMORY),)),
    Shape("prefix with the process in the format", raised(_TAGGED, "ValueError", NO_MEMORY), (("ValueError", NO_MEMORY),)),
    Shape("CRLF inside the record only", raised(_TAGGED, "ValueError", NO_MEMORY, "\r\n"), (("ValueError", NO_MEMORY),)),
    Shape("under a pty", raised(_TAGGED, "ValueError", NO_MEMORY, "\r\r\n"), (("ValueError", NO_MEMORY),)),
    Shape("debug level shortens a path into the prefix", raised("(Worker_TP0 pid=7) ERROR 09-18 00:55:15 [distributed/.../v1/nixl_connector.py:485] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("user text in front of the level", raised("node7 ERROR 09-18 00:55:15 [core.py:485] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("nested process prefixes", raised("(APIServer pid=1) (EngineCore_DP0 pid=72) ERROR 09-18 00:55:15 [core.py:485] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("Ray's address in the prefix", raised("(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=2, ip=10.0.0.2) ERROR 09-18 00:55:15 [worker_base.py:485] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("a tag that lost its bracket", raised("EngineCore_DP0 pid=72) ERROR 09-18 00:55:15 [core.py:485[] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("torchrun without a blank", "[rank1]:Traceback (most recent call last):\n[rank1]:  File \"/a/vllm/x.py\", line 1, in f\n[rank1]:    g()\n[rank1]:ValueError: x y\n", (("ValueError", "x y"),)),
    Shape("colours", raised("\x1b[0;36m(EngineCore_DP0 pid=7)\x1b[0;0m \x1b[31mERROR\x1b[0m \x1b[90m01-26 09:25:37\x1b[0m \x1b[90m[core.py:935]\x1b[0m ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("colours whose escape is lost", raised("[1;36m(VllmWorker rank=0 pid=7)[0;0m ERROR 01-26 09:25:37 [core.py:935] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("colours as replacement characters", raised("\ufffd[1;36m(VllmWorker rank=0 pid=7)\ufffd[0;0m ERROR 01-26 09:25:37 [core.py:935] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("a progress bar glued in front", "\rLoading safetensors:  50%|█████     | 1/2 [00:01<00:01]\r" + raised(_CORE, "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("a blank line after each line", raised(_CORE, "ValueError", "x y", "\n\n"), (("ValueError", "x y"),)),
    Shape("header and traceback on one line", "ERROR 03-14 10:00:00 [core.py:383] EngineCore hit an exception: " + raised(_CORE, "ValueError", "x y")[len(_CORE):], (("ValueError", "x y"),)),
    Shape("message and traceback on one line", "(VllmWorkerProcess pid=9) ERROR 07-08 12:32:42 multiproc_worker_utils.py:226] Exception in worker VllmWorkerProcess while processing method load_model: x y, Traceback (most recent call last):\n" + raised("(VllmWorkerProcess pid=9) ERROR 07-08 12:32:42 multiproc_worker_utils.py:226] ", "ValueError", "x y").split("\n", 1)[1], (("ValueError", "x y"),)),
    Shape("the record repeats its traceback as a note", "(Worker pid=3) ERROR 12-01 03:00:00 [multiproc_executor.py:953] WorkerProc hit an exception.\n" + 2 * raised("(Worker pid=3) ERROR 12-01 03:00:00 [multiproc_executor.py:953] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("bare tracebacks of 0.33", "Process EngineCore:\n" + raised("", "ValueError", "x y") + raised("", "RuntimeError", "Engine core initialization failed. See root cause above. Failed core proc(s): {}"), (("ValueError", "x y"),)),
    Shape("Python 3.13 carets and a folded source", 'Traceback (most recent call last):\n  File "/a/vllm/x.py", line 1, in f\n    raise ValueError(\n    ...<6 lines>...\n    )\n  File "/a/vllm/x.py", line 2, in g\n    h(\n    ~^\n        1,\n        ^^\n    )\n    ^\nValueError: x y\n', (("ValueError", "x y"),)),
    Shape("frames without a source line", 'Traceback (most recent call last):\n  File "<frozen runpy>", line 198, in _run_module_as_main\n  File "uvloop/loop.pyx", line 1518, in uvloop.loop.Loop.run_until_complete\nValueError: x y\n', (("ValueError", "x y"),)),
    Shape("a recursion", 'Traceback (most recent call last):\n  File "/a/vllm/x.py", line 1, in f\n    f()\n  [Previous line repeated 981 more times]\nRecursionError: maximum recursion depth exceeded\n', (("RecursionError", "maximum recursion depth exceeded"),)),
    Shape("an exception without a message", 'Traceback (most recent call last):\n  File "/a/vllm/x.py", line 1, in f\n    assert x\nAssertionError\n', (("AssertionError", ""),)),
    Shape("an exception class with an unusual name", 'Traceback (most recent call last):\n  File "/a/vllm/x.py", line 1, in f\n    assert x\nzmq.error.Again: Resource temporarily unavailable\n', (("Again", "Resource temporarily unavailable"),)),
    Shape("cause: the vLLM message explains the look-up", 'Traceback (most recent call last):\n  File "/a/x.py", line 1, in f\n    g()\nrequests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/x\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File "/a/vllm/x.py", line 1, in f\n    g()\nValueError: Unable to read it\n', (("ValueError", "Unable to read it"),)),
    Shape("cause: a bare RuntimeError only wraps", 'Traceback (most recent call last):\n  File "/a/x.py", line 1, in f\n    g()\nValueError: a.b is unsupported LoRA weight\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File "/a/vllm/x.py", line 1, in f\n    g()\nRuntimeError: Loading lora q failed\n', (("ValueError", "a.b is unsupported LoRA weight"),)),
    Shape("context: the clean-up failed too", 'Traceback (most recent call last):\n  File "/a/vllm/x.py", line 1, in f\n    g()\nValueError: x y\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File "/a/vllm/x.py", line 9, in shutdown\n    self.workers.stop()\nAttributeError: \'Executor\' object has no attribute \'workers\'\n', (("ValueError", "x y"),)),
    Shape("exception group of a task group", "ERROR:    Exception in ASGI application\n  + Exception Group Traceback (most recent call last):\n  |   File \"/a/starlette/x.py\", line 1, in f\n  |     raise BaseExceptionGroup(\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"/a/vllm/x.py\", line 1, in f\n    |     g()\n    | ValueError: x y\n    +------------------------------------\n", (("ValueError", "x y"),)),
    Shape("pydantic wraps the validator's error", 'Traceback (most recent call last):\n  File "/a/site-packages/pydantic/_internal/_dataclasses.py", line 121, in __init__\n    s.x()\npydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, x y [type=value_error, input_value=ArgsKwargs((), {\'model\': 1}), input_type=ArgsKwargs]\n    For further information visit https://errors.pydantic.dev/2.12/v/value_error\n', (("ValidationError", "x y"),)),
    Shape("pydantic in a notebook", "ValidationError                           Traceback (most recent call last)\nCell In[3], line 4\n----> 4 llm = LLM(1)\n\nFile ~/x.py:12, in f(a)\n     12 g()\n\nValidationError: 1 validation error for ModelConfig\n  Value error, x y [type=value_error, input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]\n    For further information visit https://errors.pydantic.dev/2.12/v/value_error\n", (("ValidationError", "x y"),)),
    Shape("Ray repeats for the cluster", '(RayWorkerWrapper pid=320, ip=10.0.0.2) ERROR 02-09 02:31:11 worker_base.py:572] Error executing method \'load_model\'. This might cause deadlock in distributed execution. [repeated 3x across cluster]\n(RayWorkerWrapper pid=320, ip=10.0.0.2) ERROR 02-09 02:31:11 worker_base.py:572] Traceback (most recent call last): [repeated 3x across cluster]\n(RayWorkerWrapper pid=320, ip=10.0.0.2) ERROR 02-09 02:31:11 worker_base.py:572]   File "/a/vllm/x.py", line 1, in f [repeated 3x across cluster]\n(RayWorkerWrapper pid=320, ip=10.0.0.2) ERROR 02-09 02:31:11 worker_base.py:572] ValueError: x y [repeated 3x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io/x for more options.)\n', (("ValueError", "x y"),)),
    Shape("xinference writes into the message", raised("", "ValueError", "[address=127.0.0.1:37657, pid=31] x y"), (("ValueError", "[address=127.0.0.1:37657, pid=31] x y"),)),
    Shape("the request's own error", raised("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("only the dead engine quotes its cause", "ERROR 04-10 08:57:05 [serving_chat.py:677] vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find the original error: ValueError('x y').\n", (("ValueError", "x y"),)),
    Shape("only the executor quotes its cause", raised(_TAGGED, "RuntimeError", "Worker failed with error 'x y z', please check the stack trace above for the root cause"), ((None, "x y z"),)),
    Shape("a worker was killed", "(EngineCore pid=5) ERROR 12-01 03:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.\n" + raised(_TAGGED, "RuntimeError", "cancelled"), ((None, "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor."),)),
    Shape("a usage error", "usage: vllm serve [model_tag] [options]\nvllm serve: error: argument --dtype: invalid choice: 'float64' (choose from 'auto', 'half')\n", ((None, "argument --dtype: invalid choice: 'float64' (choose from 'auto', 'half')"),)),
    Shape("LMCache's record holds the traceback", "\x1b[31;20m[2026-12-01 02:56:14,673] LMCache ERROR:\x1b[0m Failed to initialize LMCacheManager components: Traceback (most recent call last):\n  File \"/a/site-packages/lmcache/v1/manager.py\", line 93, in __init__\n    f()\nValueError: x y\n. System will operate in degraded mode (recompute). \x1b[3m(manager.py:107:lmcache.v1.manager)\x1b[0m\n", (("ValueError", "x y"),)),
    Shape("LMCache says it in one line", "[2026-12-01 02:56:14,673] LMCache ERROR: Failed to initialize LMCacheManager components: x y.. System will operate in degraded mode (recompute). (manager.py:107:lmcache.v1.manager)\n", ((None, "x y."),)),
    Shape("kserve loses the type", "2024-07-01 07:28:04.488 1 kserve ERROR [__main__.py:<module>():254] Failed to start model server: x y\n", ((None, "x y"),)),
    Shape("HTML escapes", "Traceback (most recent call last):\n  File &quot;/a/vllm/x.py&quot;, line 1, in f\n    g()\nValueError: x y\n", (("ValueError", "x y"),)),
    Shape("quoted in a reply", raised("> ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("two raw writes in one line", "Traceback (most recent call last):\n  File \"/a/vllm/x.py\", line 1, in f\n    super().__init__(a)ERROR 04-18 10:00:00 [core.py:383] " + raised(_CORE, "ValueError", "x y")[len(_CORE):] + "ValueError: x y\n", (("ValueError", "x y"),)),
    Shape("an exception group behind uvicorn's level", "".join(f"ERROR:    {line}\n" for line in ("Exception in ASGI application", "  + Exception Group Traceback (most recent call last):", '  |   File "/a/starlette/x.py", line 1, in f', "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)", "  +-+---------------- 1 ----------------", "    | Traceback (most recent call last):", '    |   File "/a/vllm/x.py", line 1, in f', "    | ValueError: x y", "    +------------------------------------")), (("ValueError", "x y"),)),
    Shape("a whole log in one line", " ".join(("(APIServer pid=1) INFO 12-01 02:00:00 [api_server.py:1839] vLLM API server version 0.11.0", *raised("(EngineCore_DP0 pid=79) ERROR 12-01 02:00:09 [core.py:708] ", "ValueError", "x y").splitlines())) + "\n", (("ValueError", "x y"),)),
    Shape("a worker that vanished, as older releases say it", "INFO:     Application startup complete.\n(EngineCore_DP0 pid=5) ERROR 12-01 03:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n" + raised("(APIServer pid=1) ERROR 12-01 03:00:00 [async_llm.py:480] ", "vllm.v1.engine.exceptions.EngineDeadError", "EngineCore encountered an issue. See stack trace (above) for the root cause."), ((None, "Worker proc VllmWorker-1 died unexpectedly, shutting down executor."),)),
    Shape("a signal ended the core at start", raised("", "RuntimeError", "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}"), ((None, "Failed core proc(s): {'EngineCore_DP0': -9}"),)),
    Shape("the port is taken", "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n", ((None, "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use"),)),
    Shape("the shell, the kernel and the C library on a crash", "terminate called after throwing an instance of 'c10::Error'\n", ((None, "terminate called after throwing an instance of 'c10::Error'"),)),
    Shape("three requests fail within a second", "".join("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] Error in preprocessing prompt inputs\n" + raised("(APIServer pid=1) ERROR 12-01 05:34:47 [serving_chat.py:264] ", "ValueError", text) for text in ("aa first", "bb second")), (("ValueError", "aa first"), ("ValueError", "bb second"))),
    Shape("an unmarked LMCache warning before the death", "[2026-12-01 03:00:00,000] LMCache WARNING: no end mark\nProcess EngineCore:\n" + raised("", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("a note at the end", raised("", "ValueError", "x y") + "note: added by add_note\n", (("ValueError", "x y"),)),
    Shape("a message of several lines, bare", raised("", "ValueError", "Invalid repository ID or local directory specified: '/m'.\nPlease verify the following requirements:\n1. Provide a valid Hugging Face repository ID.\n   - For Hugging Face models: ensure the presence of a 'config.json'."), (("ValueError", "Invalid repository ID or local directory specified: '/m'.\nPlease verify the following requirements:\n1. Provide a valid Hugging Face repository ID.\n   - For Hugging Face models: ensure the presence of a 'config.json'."),)),
    Shape("JSON logging with the traceback in exc_info", '{"asctime": "12-01 02:00:00", "levelname": "ERROR", "name": "vllm.v1.engine.core", "processName": "EngineCore", "process": 79, "message": "EngineCore failed to start.", "exc_info": "Traceback (most recent call last):\\n  File \\"/a/vllm/x.py\\", line 1, in f\\n    g()\\nValueError: x y"}\n', (("ValueError", "x y"),)),
    Shape("JSON logging with a list", '{"levelname": "ERROR", "name": "vllm", "message": "EngineCore failed to start.", "exc_info": ["Traceback (most recent call last):", "  File \\"/a/vllm/x.py\\", line 1, in f", "ValueError: x y"]}\n', (("ValueError", "x y"),)),
    Shape("Loki's object around the line", '{"line": "ERROR 05-06 01:55:26 [core.py:383] Traceback (most recent call last):", "labels": {"app": "vllm"}}\n{"line": "ERROR 05-06 01:55:26 [core.py:383]   File \\"/a/vllm/x.py\\", line 1, in f"}\n{"line": "ERROR 05-06 01:55:26 [core.py:383] ValueError: x y"}\n', (("ValueError", "x y"),)),
    Shape("stern", "".join(f"vllm-prefill-645-qxv6j vllm {line}\n" for line in raised("(APIServer pid=1) ", "ValueError", "x y").splitlines()), (("ValueError", "x y"),)),
    Shape("srun --label", "".join(f"{rank}: {line}\n" for line in ("INFO 05-06 01:55:26 [core.py:383] hello", *raised("", "ValueError", "x y").splitlines()) for rank in (0, 1)), (("ValueError", "x y"),)),
    Shape("kubectl --prefix", raised("[pod/vllm-0/vllm] ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("Docker Desktop", raised("2025-08-28 13:23:07 ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("FastChat", raised("2024-04-27 10:13:05 | ERROR | stderr | ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("a console of the cloud", raised("2026-06-09 14:01:54.604 [Info] (Process) ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("GitHub Actions", raised("2026-01-01T00:00:00.0000000Z ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("NIM", "ERROR 2025-07-21 14:34:24.934 core.py:62] EngineCore failed\n" + raised("", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("supervisor of unsloth", raised("vLLM STDERR: ", "ValueError", "x y"), (("ValueError", "x y"),)),
    Shape("journald with ISO time", raised("2025-08-17T18:42:18+0200 gpu7 vllm[8052]: (APIServer pid=8052) ", "ValueError", "x y"), (("ValueError", "x y"),)),
)  # fmt: skip
