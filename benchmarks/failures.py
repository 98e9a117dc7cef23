"""Tracebacks of a failing vLLM: messages and frames of the catalogue, in the shapes in which a server logs them."""

from __future__ import annotations

import random
from typing import NamedTuple

from lmdiag.match.catalog import Catalog, read_catalog
from lmdiag.match.catalog_format import HOLE, LINE_BREAK, OPAQUE

CATALOG = "rules/catalog/catalog.bin"
API, CORE, WORKER = 1234, 1300, 1371
"""Process ids of the server."""
_LEAST = 16
"""Literal characters that a template must have; a message such as `{x}` tells nothing."""
_VALUES = (
    "8192",
    "16",
    "'float16'",
    "Qwen/Qwen3-8B",
    "[1, 2, 4, 8]",
    "None",
    "0.9",
    "'cuda:0'",
    "/srv/model",
    "(64, 128)",
)
_ROOT = "/opt/venv/lib/python3.12/site-packages/"
_FRAMES = (
    ("vllm/v1/engine/core.py", 1482, "run_engine_core", "core.run_busy_loop()"),
    ("vllm/v1/engine/core.py", 1194, "_process_engine_step", "outputs, executed = self.step_fn()"),
    ("vllm/v1/executor/abstract.py", 126, "execute_model", "result = self.collective_rpc(name, args=args)"),
    ("vllm/v1/executor/uniproc_executor.py", 82, "collective_rpc", "value = run_method(self.driver, name, args)"),
    ("vllm/v1/worker/gpu_worker.py", 594, "execute_model", "output = self.model_runner.execute_model(batch)"),
    ("vllm/v1/worker/gpu_model_runner.py", 2310, "execute_model", "hidden = self.model(**inputs)"),
    ("vllm/v1/worker/gpu_model_runner.py", 1822, "_prepare_inputs", "self.input_batch.refresh()"),
    ("vllm/model_executor/models/llama.py", 561, "forward", "hidden, residual = layer(positions, hidden, residual)"),
    ("vllm/model_executor/layers/linear.py", 402, "apply", "return self.kernel.apply_weights(layer, x, bias)"),
    (
        "vllm/entrypoints/openai/serving_chat.py",
        239,
        "create_chat_completion",
        "prompts = await self.preprocess(request)",
    ),
    ("vllm/utils/async_utils.py", 57, "wrapper", "return await func(*args, **kwargs)"),
)
_REQUEST = (
    (" [serving_chat.py:264] ", "Error in preprocessing prompt inputs"),
    (" [serving_completion.py:201] ", "Error in completion stream generator."),
    (" [serving_chat.py:1151] ", "Error in chat completion stream generator."),
)
HEAD = b"Traceback (most recent call last):"
CAUSED = b"The above exception was the direct cause of the following exception:"
_ECHO = "RuntimeError: Worker failed with error '{}', please check the stack trace above for the root cause"


class Failure(NamedTuple):
    """An exception that vLLM raises: its type, its template, and the last frame of its traceback."""

    type: str
    template: str
    file: str
    line: int
    function: str

    def message(self, chance: random.Random) -> str:
        """Return the template with its holes filled."""
        return "".join(part if part != HOLE else chance.choice(_VALUES) for part in self.template)


class Raised(NamedTuple):
    """What one traceback of a log says, for its truth."""

    type: str
    message: str
    logged: bool
    """Whether vLLM's prefix stands on each line; else it is raw."""
    chained: bool


def texts(catalog: Catalog) -> list[tuple[int, str]]:
    """Return the templates that are long enough to tell something, with the numbers of their rows."""
    keys = ((number, key.replace(LINE_BREAK, "\n")) for number, key in enumerate(catalog.texts) if key[:1] != OPAQUE)
    return [(number, key) for number, key in keys if len(key.replace(HOLE, "")) >= _LEAST]


def failures(count: int, path: str = CATALOG) -> list[Failure]:
    """Return so many failures of vLLM's, evenly from the whole catalogue: the same ones each time."""
    catalog = read_catalog(path)
    known = texts(catalog)
    found: list[Failure] = []
    for number, key in known[:: max(1, len(known) // (2 * count))]:
        site = catalog.row(number).sites[0]
        if site.project == "vllm" and len(found) < count:
            found.append(
                Failure(site.type_in(site.last)[0], key, site.file, site.lines_in(site.last)[0], site.function)
            )
    return found


def traceback(failure: Failure, message: str, chance: random.Random, *, chained: bool) -> list[str]:
    """Return the lines of a traceback, without their ends; a chained one ends in an exception that quotes the first."""
    lines = [*_frames(chance), f'  File "{_ROOT}{failure.file}", line {failure.line}, in {failure.function}']
    lines += ["    raise error", *f"{failure.type}: {message}".split("\n")]
    if chained:
        lines += ["", CAUSED.decode(), "", *_frames(chance), *_ECHO.format(message).split("\n")]
    return lines


def _frames(chance: random.Random) -> list[str]:
    chosen = sorted(chance.sample(range(len(_FRAMES)), chance.randrange(5, len(_FRAMES))))
    lines = [HEAD.decode()]
    for file, line, function, code in map(_FRAMES.__getitem__, chosen):
        lines += [f'  File "{_ROOT}{file}", line {line}, in {function}', f"    {code}", f"    {'^' * len(code)}"]
    return lines


def failed_request(failure: Failure, stamp: str, chance: random.Random) -> tuple[str, Raised]:
    """Return what the API server logs of a failed request, and what it says."""
    place, words = chance.choice(_REQUEST)
    return _shown(failure, f"(APIServer pid={API}) ERROR {stamp}{place}", words, chance)


def engine_error(failure: Failure, stamp: str, chance: random.Random) -> tuple[str, Raised]:
    """Return what one of eight engines logs of an error, though the server goes on, and what it says."""
    prefix = f"(EngineCore_DP{chance.randrange(8)} pid={CORE}) ERROR {stamp} [core.py:718] "
    return _shown(failure, prefix, "EngineCore encountered a fatal error.", chance)


def _shown(failure: Failure, prefix: str, words: str, chance: random.Random) -> tuple[str, Raised]:
    """A traceback as it stands in a log: 70 % logged, else raw; half of them chained."""
    raised = Raised(failure.type, failure.message(chance), chance.random() < 0.7, chance.random() < 0.5)
    lines = traceback(failure, raised.message, chance, chained=raised.chained)
    if raised.logged:
        return logged(prefix, [words, *lines]), raised
    process = chance.choice(("", f"(APIServer pid={API}) "))
    return "".join(f"{process}{line}\n" for line in lines), raised


def death(failure: Failure, stamp: str, chance: random.Random) -> tuple[str, Raised]:
    """Return what an engine logs of its end, and why it died."""
    raised = Raised(failure.type, failure.message(chance), logged=True, chained=False)
    lines = traceback(failure, raised.message, chance, chained=False)
    prefix = f"(EngineCore pid={CORE}) ERROR {stamp} [core.py:1510] "
    return logged(prefix, ["EngineCore encountered a fatal error.", *lines]), raised


def logged(prefix: str, lines: list[str]) -> str:
    """Return the lines of one record: vLLM's formatter (vllm/logging_utils/formatter.py) ends all but the last in CR LF."""
    return "\r\n".join(f"{prefix}{line}" for line in lines) + "\n"
