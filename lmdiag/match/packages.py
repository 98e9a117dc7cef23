"""Which package a frame of a traceback belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lmdiag.model import Frame

_PACKAGE = re.compile(r"(?:site-packages|dist-packages)[/\\]((\w+)(?:[/\\].*|\.py))$")
# The first such directory is the package; a checkout is often called like the package inside it (vllm/vllm/…).
_CHECKOUT = re.compile(r"(?:^|[/\\])((vllm|lmcache)[/\\](?!\2[/\\]).*)$")
_STANDARD = re.compile(r"(?:^|[/\\])lib(?:64)?[/\\]python3\.\d+t?[/\\]((\w+).*\.py)$")
_IMPORTLIB = re.compile(r"^<frozen importlib[\w.]*>$|[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]importlib[/\\]")
_MAX_IMPORTLIB = 32
HIDING = frozenset({"pydantic", "pydantic_core", "concurrent", "asyncio", "multiprocessing", "threading"})
"""pydantic hides the frame of a validator; the others raise again what another thread or process has raised."""


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
    """Whether the last frame of a traceback is of code that hides where an exception was raised."""
    last = locate(frames[-1]) if frames else None
    return last is not None and last.package in HIDING


def may_be_of(project: str, frames: Sequence[Frame]) -> bool:
    """Whether code of a project may have raised what hides its frame: it is among the callers, or none is known."""
    callers = [found.package if (found := locate(frame)) else "" for frame in frames]
    others = [package for package in callers if package not in HIDING]
    return not others or project in others


def locate(frame: Frame) -> Located | None:
    """Return a frame's package and the path in it, or None if the file lies in none that is known."""
    # An environment may be called vllm: /opt/conda/envs/vllm/lib/python3.12/json/decoder.py is json's.
    hit = _PACKAGE.search(frame.file) or _STANDARD.search(frame.file) or _CHECKOUT.search(frame.file)
    if hit is None:
        return None
    return Located(hit.group(2), hit.group(1).replace("\\", "/"), frame.function, frame.line)
