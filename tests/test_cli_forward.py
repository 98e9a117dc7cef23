from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from forwarding import put, report

import lmdiag
from lmdiag.cli import main
from lmdiag.cli_parser import parser
from lmdiag.forward.outbox import Outbox
from lmdiag.outbox_commands import Chosen

TIMEOUT = 60  # seconds; only a hanging process ever waits so long


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file and no variable of the machine's owner takes part."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("LMDIAG_CONFIG", "STATE_DIRECTORY", "CONFIGURATION_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


class Calls:
    """Stands for a function behind the command line; keeps what it was asked."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any, **named: Any) -> int:
        """Keep the arguments; the answer is an exit code that nothing else has."""
        self.made.append((*arguments, named) if named else arguments)
        return 7


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Calls]:
    def replace(module: str, function: str, **kept: object) -> Calls:
        calls, fake = Calls(), ModuleType(module)
        for name, value in {function: calls, **kept}.items():
            setattr(fake, name, value)
        monkeypatch.setitem(sys.modules, module, fake)
        monkeypatch.setattr(lmdiag, module.rpartition(".")[2], fake, raising=False)
        return calls

    return replace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration with a sink and a state directory."""
    path = tmp_path / "c.toml"
    path.write_text(
        f'state = "{tmp_path}/state"\ninstance = "node7"\n[sinks.audit]\ntype = "file"\npath = "{tmp_path}/out.jsonl"\n',
        encoding="utf-8",
    )
    return path


def test_forward_test_gets_the_configuration(behind: Callable[..., Calls], file: Path) -> None:
    calls = behind("lmdiag.forward_commands", "send_tests")
    given = [
        "forward",
        "test",
        "one",
        "two",
        "--config",
        str(file),
        "--dry-run",
        "--format",
        "jsonl",
        "--color",
        "never",
        "--width",
        "90",
    ]
    assert main(given) == 7
    assert main(["forward", "test", "--config", str(file)]) == 7
    (config, *rest), (second, *plain) = calls.made
    assert (config.color, config.width, config.instance, [sink.name for sink in config.sinks]) == (
        False,
        90,
        "node7",
        ["audit"],
    )
    assert rest == [str(file), ["one", "two"], "jsonl", sys.stdout, {"dry_run": True}]
    assert (second.color, second.width) == (None, None)
    assert plain == [str(file), [], "text", sys.stdout, {"dry_run": False}]


def test_a_wrong_configuration_is_2(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('[sinks.audit]\ntype = "fiel"\n', encoding="utf-8")
    for arguments in (("forward", "test"), ("outbox", "list")):
        assert main([*arguments, "--config", str(file)]) == 2
        assert "sinks.audit" in capsys.readouterr().err


def test_forward_test_from_the_command_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forward", "test", "--config", str(file), "--width", "80"]) == 0
    assert capsys.readouterr().out.startswith("audit (file), opened\n")
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert (line["instance"], line["data"]["title"][:14]) == ("node7", "Test of lmdiag")
    assert main(["forward", "test", "audti", "--config", str(file)]) == 2
    assert "did you mean audit?" in capsys.readouterr().err
    assert main(["forward", "test", "--config", "/dev/null"]) == 2
    assert "[sinks.oncall]" in capsys.readouterr().err


def test_outbox_list(behind: Callable[..., Calls], file: Path, tmp_path: Path) -> None:
    calls = behind("lmdiag.outbox_commands", "list_deliveries")
    assert main(["outbox", "list", "--config", str(file)]) == 7
    given = ["--sink", "x", "--all", "--format", "jsonl", "--color", "always", "--width", "90"]
    assert main(["outbox", "list", "--state", "/t", *given]) == 7
    assert calls.made == [
        (f"{tmp_path}/state", "", "text", None, None, sys.stdout, sys.stderr, {"done": False}),
        ("/t", "x", "jsonl", True, 90, sys.stdout, sys.stderr, {"done": True}),
    ]


def test_outbox_show(behind: Callable[..., Calls]) -> None:
    calls = behind("lmdiag.outbox_commands", "show")
    assert main(["outbox", "show", "a1", "--state", "/t", "--format", "jsonl", "--color", "never"]) == 7
    ((directory, name, style, cards, *rest),) = calls.made
    assert (directory, name, style, rest) == ("/t", "a1", "jsonl", [False, None, sys.stdout])
    assert cards("lmcache-mla-layerwise").id == "lmcache-mla-layerwise"


@pytest.mark.parametrize("action", ["retry", "drop"])
@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        (("1", "key-2"), Chosen(("1", "key-2"))),
        (("--sink", "x"), Chosen((), "x")),
        (("--dead",), Chosen(dead=True)),
        ((), Chosen()),
    ],
)
def test_outbox_retry_and_drop(
    action: str, given: tuple[str, ...], chosen: Chosen, behind: Callable[..., Calls]
) -> None:
    calls = behind("lmdiag.outbox_commands", action, Chosen=Chosen)
    assert main(["outbox", action, *given, "--state", "/t"]) == 7
    assert calls.made == [("/t", chosen, sys.stdout)]


def test_outbox_from_the_command_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--config", str(file))
    assert main(["outbox", "list", *place]) == 0
    assert "there is no outbox in" in capsys.readouterr().out
    for action in ("show", "retry", "drop"):
        assert main(["outbox", action, "1", *place]) == 2
    assert not (tmp_path / "state").exists()
    with closing(Outbox(str(tmp_path / "state"))) as outbox:
        put(outbox, report("a"), report("b"), sink="audit")
    capsys.readouterr()
    assert main(["outbox", "list", *place]) == 0
    assert capsys.readouterr().out.startswith("2 waiting, no dead letters\n")
    assert main(["outbox", "show", "a", *place]) == 0
    assert capsys.readouterr().out.startswith("WAITING  1 for audit\n")
    assert main(["outbox", "retry", *place]) == 2
    assert main(["outbox", "retry", "1", "--dead", *place]) == 2
    assert main(["outbox", "retry", "1", *place]) == 0
    assert main(["outbox", "drop", "--sink", "audit", *place]) == 0
    assert main(["outbox", "drop", "1", *place]) == 2
    assert "lmdiag outbox list --all" in capsys.readouterr().err


def test_the_outbox_of_a_named_directory_needs_no_right_configuration(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMDIAG_SETTLE", "wrong")
    assert main(["outbox", "list"]) == 2
    assert main(["outbox", "list", "--state", str(tmp_path), "--config", "/nowhere/c.toml"]) == 0


def test_the_state_directory_is_the_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", "/nowhere/s")
    assert main(["outbox", "list"]) == 0
    assert "/nowhere/s" in capsys.readouterr().out


WRONG = {
    "no action of forward": ("forward",),
    "no action of outbox": ("outbox",),
    "no name": ("outbox", "show"),
    "an unknown format": ("outbox", "list", "--format", "markdown"),
    "an unknown flag": ("forward", "test", "--state", "x"),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_usage_is_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: lmdiag" in capsys.readouterr().err


def test_help_lists_the_commands_whatever_is_named() -> None:
    for arguments in (None, (), ("--help",), ("explain", "x"), ("outbox",)):
        text = parser(arguments).format_help()
        assert all(f"\n    {command} " in text for command in ("forward", "outbox"))


def test_completion_knows_all_flags() -> None:
    whole = parser()
    assert whole.parse_args(["forward", "test", "--dry-run"]).dry_run
    assert whole.parse_args(["outbox", "retry", "--dead"]).dead


@pytest.mark.parametrize("arguments", [("scan", "/dev/null"), ("--version",)])
def test_the_other_commands_start_without_these(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "lmdiag", *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False)  # fmt: skip
    assert "lmdiag.cli" in done.stderr
    unwanted = ("lmdiag.settings", "lmdiag.forward", "lmdiag.outbox_commands", "sqlite3", "urllib3")
    assert not [name for name in unwanted if f" {name}" in done.stderr]
