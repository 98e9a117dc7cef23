"""Which package a frame of a traceback belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lmdiag.lazy_pattern import lazy
from lmdiag.model import Frame

_PACKAGE = lazy(r"(?:site-packages|dist-packages)[/\\]((\w+)(?:[/\\].*|\.py))$")
# Code of a model's own repository, which `--trust-remote-code` runs; vLLM has copies of some.
_REMOTE = lazy(r"(?:^|[/\\])((transformers_modules)[/\\].*)$")
# The first such directory is the package; a checkout is often called like the package inside it (vllm/vllm/…), and so
# may be the directory of a plugin's or of an operator's own files: those have no package of that name inside.
_CHECKOUT = lazy(r"(?:^|[/\\])((vllm|lmcache)[/\\](?!\2[/\\])(?:[a-z]\w*[/\\])*\w+\.py)$")
_PLUGIN = lazy(r"[/\\](?:vllm|lmcache)[/\\]((?:vllm|lmcache)_\w+)[/\\]")
_STANDARD = lazy(r"(?:^|[/\\])lib(?:64)?[/\\]python3\.\d+t?[/\\]((\w+).*\.py)$")
_IMPORTLIB = lazy(r"^<frozen importlib[\w.]*>$|[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]importlib[/\\]")
_MAX_IMPORTLIB = 32
PROJECTS = ("vllm", "lmcache")
_VALIDATORS = ("pydantic", "pydantic_core")
_CARRIERS = ("concurrent", "asyncio", "multiprocessing", "threading")
_AGAIN = frozenset({"result", "__get_result", "get", "run_until_complete", "run", "wait_for", "_run_module_as_main"})


class Located(NamedTuple):
    """A frame, by its place in a package."""

    package: str
    """The package's name, or the standard library's module."""
    path: str
    """From the package's parent: vllm/config/model.py."""
    function: str
    line: int


def raising_frame(frames: Sequence[Frame]) -> Located | None:
    """Return the frame that raised, or None: without frames, where its file is of no package, or where it is hidden.

    A failed import is raised by the `import`, not by the frames of importlib behind it.
    """
    own = [frame for frame in frames[-_MAX_IMPORTLIB:] if not _IMPORTLIB.search(frame.file)]
    return None if frame_is_hidden(own) or not own else locate(own[-1])


def frame_is_hidden(frames: Sequence[Frame]) -> bool:
    """Whether the last frame of a traceback is of code that hides where an exception was raised.

    pydantic hides the frame of a validator; a future raises again what another thread or process has raised.
    """
    last = locate(frames[-1]) if frames else None
    return last is not None and _hides(last)


def _hides(frame: Located) -> bool:
    return frame.package in _VALIDATORS or (frame.package in _CARRIERS and frame.function in _AGAIN)


def may_be_of(project: str, frames: Sequence[Frame]) -> bool:
    """Whether code of a project may have raised what hides its frame: it is among the callers, or none is known."""
    others = [found.package if found else "" for frame in frames if not (found := locate(frame)) or not _hides(found)]
    return not others or project in others


def locate(frame: Frame) -> Located | None:
    """Return a frame's package and the path in it, or None if the file lies in none that is known."""
    # An environment may be called vllm: /opt/conda/envs/vllm/lib/python3.12/json/decoder.py is json's.
    hit = _PACKAGE.search(frame.file) or _STANDARD.search(frame.file) or _REMOTE.search(frame.file)
    if hit is None and not _is_own(frame.file):
        hit = _CHECKOUT.search(frame.file)
    if hit is None:
        return None
    plugin = _PLUGIN.search(f"/{hit.group(1)}")
    path = hit.group(1)[len(hit.group(2)) + 1 :] if plugin else hit.group(1)
    return Located(plugin.group(1) if plugin else hit.group(2), path.replace("\\", "/"), frame.function, frame.line)


def _is_own(file: str) -> bool:
    """Whether a file below a directory called vllm is its owner's: a cache, a console script, or a script beside others.

    A module that lies right in the package has a checkout around it: /src/vllm/vllm/envs.py, not /opt/vllm/start.py.
    """
    parts = re.split(r"[/\\]", file)
    if "bin" in parts or any(part.startswith(".") and part.strip(".") for part in parts):
        return True
    beside = len(parts) > 2 and parts[-2] in PROJECTS and not parts[-3].startswith(parts[-2])
    return parts[0] == "" and beside and not any(part in PROJECTS for part in parts[:-2])
