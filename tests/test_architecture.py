"""The house has one straight way through it: read -> parse -> match -> diagnose -> report."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmdiag

ROOT = Path(lmdiag.__file__).parent
FLOW = ("read", "parse", "match", "diagnose", "report")
# What joins the stages, each with what it may use beside `model` and `errors`.
BEHIND: dict[str, frozenset[str]] = {
    "pipeline": frozenset({"parse", "diagnose"}),
    "config": frozenset(),
    "catalog": frozenset({"match"}),
    "catalog_commands": frozenset({"match", "report", "catalog"}),
    "catalog_diff_command": frozenset({"match", "report", "catalog_commands"}),
    "cli_catalog": frozenset({"catalog_commands", "catalog_diff_command", "lmdiag"}),
    "samples": frozenset({*FLOW, "pipeline", "config"}),
    "library_commands": frozenset({*FLOW, "pipeline", "config", "samples"}),
    "card_checks": frozenset({*FLOW, "pipeline", "samples"}),
    "placed": frozenset({"read", "diagnose"}),
    "examine": frozenset({*FLOW, "pipeline", "blocks", "placed"}),
    "worker_process": frozenset({*FLOW, "examine"}),
    "worker": frozenset({"worker_process"}),
    "workers": frozenset({*FLOW, "examine", "worker", "worker_process"}),
    "scan_progress": frozenset({"read", "config"}),
    "scan_inputs": frozenset({*FLOW, "config", "examine", "workers", "scan_progress"}),
    "tally": frozenset({*FLOW, "examine"}),
    "scan": frozenset({*FLOW, "config", "scan_inputs", "tally"}),
    "blocks": frozenset({"read", "parse", "pipeline"}),
    "watch": frozenset(
        {*FLOW, "pipeline", "blocks", "config", "settings", "forward", "database", "http_server", "lmdiag"}
    ),
    "database": frozenset(),
    "forward": frozenset({*FLOW, "config", "database", "lmdiag"}),
    "service_target": frozenset(),
    "service_command": frozenset({"service_target", "lmdiag"}),
    "settings": frozenset({"config", "report"}),
    "config_commands": frozenset({"config", "settings", "read", "report", "sink_checks"}),
    "sink_checks": frozenset({"config", "settings", "forward"}),
    "http_server": frozenset({"settings"}),
    "receive": frozenset({*FLOW, "scan", "watch", "http_server", "forward", "settings", "lmdiag"}),
    "cli_receive": frozenset({"receive", "cli_forward"}),
    "forward_commands": frozenset({*FLOW, "config", "settings", "forward", "samples"}),
    "outbox_blocks": frozenset({"report", "forward", "watch"}),
    "outbox_commands": frozenset({"report", "forward", "watch", "outbox_blocks"}),
    "cli_forward": frozenset(
        {"config", "settings", "match", "forward", "forward_commands", "outbox_commands", "scan", "cli_watch"}
    ),
    "cli_watch": frozenset({"config", "settings", "config_commands", "service_command", "watch", "lmdiag"}),
    "cli": frozenset(
        {
            "config",
            "card_checks",
            "match",
            "library_commands",
            "scan",
            "cli_catalog",
            "cli_watch",
            "cli_forward",
            "cli_receive",
            "cli_parser",
            "quick_options",
            "report",
        }
    ),
    "cli_parser": frozenset({"cli_catalog", "cli_watch", "cli_forward", "cli_receive", "quick_options", "lmdiag"}),
    "quick_options": frozenset(),
    "lazy_pattern": frozenset(),
    "digests": frozenset(),
    "__main__": frozenset({"cli"}),
}
EVERYWHERE = frozenset({"model", "errors", "lazy_pattern", "digests"})
# `lmdiag` itself holds only the version and the package's place.
ALLOWED = BEHIND | {stage: frozenset({*FLOW[: FLOW.index(stage)], "lmdiag"}) for stage in FLOW}
ALLOWED |= {"model": frozenset(), "errors": frozenset(), "lmdiag": frozenset()}
IMPURE = frozenset({"os", "io", "time", "datetime", "threading", "logging", "pathlib", "subprocess", "rich"})
MODULES = sorted(ROOT.rglob("*.py"))


def part(path: Path) -> str:
    """The stage or module of a file: `parse` for lmdiag/parse/clean.py, `scan` for lmdiag/scan.py."""
    inside = path.relative_to(ROOT)
    return inside.parts[0] if len(inside.parts) > 1 else {"__init__": "lmdiag"}.get(inside.stem, inside.stem)


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """The modules that a file imports, at any depth of it, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import hides where it points"
            assert node.module is not None
            if node.module == "lmdiag":
                known = {part(module) for module in MODULES}
                yield from (
                    (f"lmdiag.{alias.name}" if alias.name in known else "lmdiag", node.lineno) for alias in node.names
                )
            else:
                yield node.module, node.lineno


def own(path: Path) -> Iterator[tuple[str, int]]:
    """The parts of lmdiag that a file imports."""
    for name, line in imports(path):
        if name.partition(".")[0] == "lmdiag":
            yield (name.split(".")[1] if "." in name else "lmdiag"), line


def test_every_part_is_in_the_picture() -> None:
    assert {part(path) for path in MODULES} - set(ALLOWED) == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_only_to_the_left(path: Path) -> None:
    mine = part(path)
    wrong = [f"line {line}: {name}" for name, line in own(path) if name not in ALLOWED[mine] | EVERYWHERE | {mine}]
    assert wrong == []


@pytest.mark.parametrize("path", [path for path in MODULES if part(path) in ("parse", "diagnose", "pipeline")], ids=lambda path: str(path.relative_to(ROOT)))  # fmt: skip
def test_the_pure_stages_touch_no_world(path: Path) -> None:
    wrong = [f"line {line}: {name}" for name, line in imports(path) if name.partition(".")[0] in IMPURE]
    assert wrong == []


@pytest.mark.parametrize("path", [path for path in MODULES if part(path) in ("parse", "diagnose", "pipeline")], ids=lambda path: str(path.relative_to(ROOT)))  # fmt: skip
def test_the_pure_stages_print_and_open_nothing(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    assert [
        node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id in ("print", "open", "input")
    ] == []


def test_nobody_imports_the_command_line() -> None:
    assert [str(path) for path in MODULES if part(path) != "__main__" and "cli" in dict(own(path))] == []
