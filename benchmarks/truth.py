"""What a scan finds in a log, beside what was written into it: speed is worth nothing where something is missed."""

from __future__ import annotations

import json

from benchmarks.logs import MB, log_of, size_name, truth_of
from benchmarks.processes import output_of
from benchmarks.results import table
from benchmarks.rows import Scanner
from benchmarks.scaling import KINDS

SIZE = 100 * MB
_HEADS = ("log", "size", "lines", "prompts that quote an error", "tracebacks", "tracebacks read", "incidents")


def found_in(scanner: Scanner, kind: str, size: int) -> list[str]:
    """Return the cells of a log: what it holds, and what a scan reads and reports."""
    log = log_of(kind, size)
    truth = truth_of(log)
    summary = json.loads(output_of(scanner.scan(str(log), "--format", "jsonl")).splitlines()[-1])
    incidents = sum(summary["by_severity"].values())
    written = [f"{truth[name]:,}" for name in ("lines", "quoted", "tracebacks")]
    return [kind, size_name(size), *written, f"{summary['tracebacks']:,}", f"{incidents:,}"]


def found_table(scanner: Scanner) -> str:
    """Return the table of all kinds of logs."""
    return table(_HEADS, [found_in(scanner, kind, SIZE) for kind in KINDS])
