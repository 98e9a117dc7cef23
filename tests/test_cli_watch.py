from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lmdiag
from lmdiag.cli import main
from lmdiag.cli_parser import parser
from lmdiag.config import WatchConfig
from lmdiag.errors import ConfigError

COMMANDS = ("watch", "status", "config", "service")
TIMEOUT = 60  # seconds; only a hanging process ever waits so long


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file and no variable of the machine's owner takes part."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("LMDIAG_CONFIG", raising=False)


class Calls:
    """Stands for the modules behind the command line; keeps what they were asked."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any) -> int:
        """Keep the arguments; the answer is an exit code that nothing else has."""
        self.made.append(arguments)
        return 7


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Calls]:
    def replace(module: str, function: str) -> Calls:
        calls, fake = Calls(), ModuleType(module)
        setattr(fake, function, calls)
        monkeypatch.setitem(sys.modules, module, fake)
        monkeypatch.setattr(lmdiag, module.rpartition(".")[2], fake, raising=False)
        return calls

    return replace


def test_watch_gets_the_configuration(behind: Callable[[str, str], Calls]) -> None:
    watch = behind("lmdiag.watch.main", "watch")
    arguments = ["watch", "a.log", "b.log", "--journal", "x.service", "--journal", "y.service", "--from", "end", "--rules", "r",
                 "--disable", "oom", "--state", "s", "--listen", "", "--settle", "0", "--quiet", "1m", "--quiet-down", "2m",
                 "--remind", "1m,2m", "--poll", "always", "--poll-interval", "1s", "--scan-interval", "2s", "--max-behind", "1MiB",
                 "--max-cpu", "1", "--format", "jsonl", "--color", "never", "--width", "80", "--no-live", "--once"]  # fmt: skip
    assert main(arguments) == 7
    config, reload, out, err = watch.made[0]
    assert config == WatchConfig(
        ("a.log", "b.log"), ("x.service", "y.service"), "end", ("r",), ("oom",), "s", "", 0, 60, 120, (60, 120),
        "always", 1, 2, 1 << 20, 1, "jsonl", color=False, width=80, live=False, once=True,
    )  # fmt: skip
    assert (reload(), out, err) == (config, sys.stdout, sys.stderr)


def test_a_reload_reads_the_file_again_under_the_same_flags(
    behind: Callable[[str, str], Calls], tmp_path: Path
) -> None:
    watch = behind("lmdiag.watch.main", "watch")
    file = tmp_path / "c.toml"
    file.write_text('journal = ["a.service"]\nsettle = 2\nquiet = 60', encoding="utf-8")
    assert main(["watch", "--config", str(file), "--quiet", "5m"]) == 7
    config, reload, *_ = watch.made[0]
    assert (config.settle, config.quiet) == (2, 300)
    file.write_text('journal = ["a.service"]\nsettle = 3\nquiet = 60', encoding="utf-8")
    assert (reload().settle, reload().quiet) == (3, 300)
    for wrong in ("settle = 99", ""):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError):
            reload()


def test_nothing_to_watch_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lmdiag: there is nothing to watch")


def test_a_wrong_flag_is_2_and_told_with_the_other_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "a.log", "--settle", "61s", "--max-cpu", "50%"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].strip() for line in told] == ["lmdiag", "--settle", "--max-cpu"]


def test_status(behind: Callable[[str, str], Calls], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = behind("lmdiag.watch.status", "status")
    monkeypatch.setenv("STATE_DIRECTORY", "/s")
    assert main(["status"]) == 7
    assert main(["status", "--state", "/t", "--format", "jsonl", "--color", "always", "--width", "90"]) == 7
    assert status.made == [("/s", "text", None, None, sys.stdout), ("/t", "jsonl", True, 90, sys.stdout)]


def test_status_of_a_named_directory_needs_no_right_configuration(
    behind: Callable[[str, str], Calls], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = behind("lmdiag.watch.status", "status")
    monkeypatch.setenv("LMDIAG_SETTLE", "wrong")
    assert main(["status"]) == 2
    assert main(["status", "--state", "/t", "--config", "/nowhere/c.toml"]) == 7
    assert len(status.made) == 1


def test_config(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('settle = "2s"\nsetle = 1', encoding="utf-8")
    assert main(["config", "check", "--config", str(file)]) == 2
    assert "did you mean settle?" in capsys.readouterr().out
    file.write_text('settle = "2s"', encoding="utf-8")
    assert main(["config", "check", "--config", str(file), "--journal", "a.service"]) == 0
    assert capsys.readouterr() == (f"{file}: ok\n", "")
    assert main(["config", "show", "--config", str(file), "--quiet", "5m", "--format", "jsonl"]) == 0
    shown = capsys.readouterr().out
    assert '"settle", "value": 2.0, "origin": "file"' in shown
    assert '"quiet", "value": 300.0, "origin": "flag"' in shown


@pytest.mark.parametrize(
    ("arguments", "function", "asked"),
    [
        (("install",), "install", ("/", [], True, False)),
        (("install", "--prefix", "/p", "--with", "ray", "--with", "docker", "--no-start", "--dry-run"), "install", ("/p", ["ray", "docker"], False, True)),
        (("uninstall",), "uninstall", ("/", False)),
        (("uninstall", "--purge", "--prefix", "/p"), "uninstall", ("/p", True)),
        (("status", "--prefix", "/p"), "service_status", ("/p",)),
    ],
)  # fmt: skip
def test_service(
    arguments: tuple[str, ...], function: str, asked: tuple[object, ...], behind: Callable[[str, str], Calls]
) -> None:
    calls = behind("lmdiag.service_command", function)
    assert main(["service", *arguments]) == 7
    assert calls.made == [(*asked, sys.stdout)]


WRONG = {
    "no action of config": ("config",),
    "no action of service": ("service",),
    "an unknown node": ("service", "install", "--with", "slurm"),
    "an unknown word": ("watch", "a.log", "--poll", "never"),
    "an unknown format": ("status", "--format", "markdown"),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_usage_is_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert f"usage: lmdiag {arguments[0]}" in capsys.readouterr().err


def test_help_lists_the_commands_whatever_is_named() -> None:
    for arguments in (None, (), ("--help",), ("explain", "x"), COMMANDS):
        text = parser(arguments).format_help()
        assert all(f"\n    {command} " in text for command in COMMANDS)


def test_completion_knows_all_flags() -> None:
    whole = parser()
    assert whole.parse_args(["watch", "--once", "x"]).once
    assert whole.parse_args(["service", "uninstall", "--purge"]).purge


@pytest.mark.parametrize("arguments", [("scan", "/dev/null"), ("--version",)])
def test_the_other_commands_start_without_the_table(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "lmdiag", *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False)  # fmt: skip
    assert "lmdiag.cli" in done.stderr
    assert not [
        name
        for name in (
            "lmdiag.settings",
            "lmdiag.watch",
            "tomllib",
            "lmdiag.config_commands",
            *(["lmdiag.cli_watch"] if arguments[0] == "scan" else []),
        )
        if f" {name}" in done.stderr
    ]
