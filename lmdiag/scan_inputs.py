"""The inputs of a scan, each read once: in this process, or several at once in others where that pays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TextIO

from lmdiag.config import ScanConfig
from lmdiag.examine import Examined, examine
from lmdiag.match.cards import Problem
from lmdiag.match.library import Library
from lmdiag.read.archives import size
from lmdiag.read.paths import Input, rotated_siblings
from lmdiag.scan_progress import Progress

if TYPE_CHECKING:
    from lmdiag.read.span import Span

MANY = 32 << 20
"""Bytes of several files from which they are read in processes, unless --jobs asks for those. Two healthy logs of together so
much take as long either way, since each worker prepares for its first error anew; two that are full of errors a third less."""


class Everything(NamedTuple):
    """What all inputs gave."""

    found: tuple[tuple[Input, Examined], ...] = ()
    """In their order; those that were not begun before an interruption are missing."""
    interrupted: bool = False
    problems: tuple[Problem, ...] = ()
    """Those of the libraries of other processes."""
    muted: tuple[tuple[str, int], ...] = ()
    """Of all libraries, one behind the other; see Library.muted_patterns."""


def read_inputs(
    config: ScanConfig, inputs: Sequence[Input], library: Library, err: TextIO, span: Span | None
) -> Everything:
    """Examine all inputs; on a terminal (`err`) large ones show how far they are. Returns early if interrupted."""
    progress = Progress(config, inputs, err)
    try:
        apart, found = _apart(config, inputs, library, progress, span)
        interrupted = apart.interrupted
        for number, entry in enumerate(inputs):
            if number not in found and not interrupted:
                found[number] = examine(entry, library, at=partial(progress.at, number), span=span)
                interrupted = found[number].interrupted
    finally:
        progress.stop()
    in_order = tuple((inputs[number], found[number]) for number in sorted(found))
    return Everything(in_order, interrupted, apart.problems, (*apart.muted, *library.muted_patterns))


def _apart(
    config: ScanConfig, inputs: Sequence[Input], library: Library, progress: Progress, span: Span | None
) -> tuple[Everything, dict[int, Examined]]:
    """What other processes gave, and that of each input by its number."""
    jobs = config.jobs or len(os.sched_getaffinity(0))
    files = _files(inputs) if jobs > 1 else {}
    if len(files) < 2 or not (config.jobs or sum(files.values()) >= MANY):
        return Everything(), {}
    from lmdiag.workers import Workers

    workers = Workers({number: inputs[number] for number in files}, library, jobs, progress.at, span)
    found = workers.run()
    return Everything((), workers.interrupted, workers.problems, workers.muted), found


def _files(inputs: Sequence[Input]) -> dict[int, int]:
    """The sizes in bytes of the inputs that are files with something in them, by number: none is a pipe."""
    if len(inputs) < 2:
        return {}
    sizes = {number: size(entry.path) or 0 for number, entry in enumerate(inputs) if entry.path != "-"}
    return {number: known for number, known in sizes.items() if known}


def with_rotated(inputs: Sequence[Input]) -> tuple[Input, ...]:
    """Put the rotated siblings of each input before it, unless they are inputs themselves."""
    known = {entry.path for entry in inputs}
    found: list[Input] = []
    for entry in inputs:
        siblings = () if entry.path == "-" else rotated_siblings(entry.path)
        found += [Input(path, path) for path in siblings if path not in known]
        found.append(entry)
    return tuple(found)


def newest_parts(inputs: Sequence[Input]) -> tuple[tuple[str, str], ...]:
    """Return the rotated siblings of the inputs, each with its input."""
    return tuple((path, entry.path) for entry in inputs if entry.path != "-" for path in rotated_siblings(entry.path))
