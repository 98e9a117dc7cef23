from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from shapes import raised
from test_match_cards import GOOD

import lmdiag
from lmdiag.cli import main

CARD = GOOD.replace('raised_in = ["adapter.py:_init"]\n', "")
MESSAGE = "serde a of 3 is not naive"
FAILED = raised("(EngineCore pid=7) ERROR 12-01 02:00:00 [core.py:1] ", "ValueError", MESSAGE)
COMMAND = (sys.executable, "-m", "lmdiag")
TIMEOUT = 60  # seconds; only a hanging process ever waits so long


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "server.log"
    path.write_text(FAILED, encoding="utf-8")
    return str(path)


@pytest.fixture
def rules(tmp_path: Path) -> str:
    directory = tmp_path / "rules"
    directory.mkdir()
    (directory / "site-serde.toml").write_text(CARD, encoding="utf-8")
    return str(directory)


def usage_error(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


WRONG = {
    "no command": (),
    "an unknown command": ("scn",),
    "an unknown flag": ("scan", "x.log", "--unknown"),
    "no path": ("scan",),
    "an unknown severity": ("scan", "x.log", "--fail-on", "fatal"),
    "an unknown format": ("scan", "x.log", "--format", "xml"),
    "a width that is no number": ("scan", "x.log", "--width", "wide"),
    "a width of nothing": ("scan", "x.log", "--width", "0"),
    "an odd digit as width": ("scan", "x.log", "--width", "²"),
    "an unknown shell": ("completion", "tcsh"),
    "no message": ("explain",),
    "no action": ("cards",),
    "no action of the catalogue": ("catalog",),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_usage_is_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert usage_error(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: lmdiag" in captured.err


@pytest.mark.parametrize(
    "arguments", [("--help",), ("scan", "--help"), ("explain", "--help"), ("cards", "new", "--help"), ("catalog", "build", "--help")]
)
def test_help_is_no_failure(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert usage_error(*arguments) == 0
    assert "usage: lmdiag" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert usage_error("--version") == 0
    assert capsys.readouterr().out == f"lmdiag {lmdiag.__version__}\n"


SCANS = [((), 1), (("--exit-zero",), 0), (("--fail-on", "critical"), 1), (("--fail-on", "info", "--exit-zero"), 0)]


@pytest.mark.parametrize(("flags", "code"), SCANS)
def test_scan_returns_what_it_found(
    log: str, flags: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scan", log, *flags]) == code
    assert MESSAGE in capsys.readouterr().out


def test_the_flags_reach_the_scan(log: str, rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", log, "--format", "jsonl", "--rules", rules, "--no-progress", "-v"]) == 1
    incident, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert (incident["card"], summary["kind"]) == ("site-serde", "summary")


def test_colour_and_width_are_as_asked_for(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["scan", log, "--color", "always", "--width", "60"])
    assert "\x1b[" in capsys.readouterr().out
    main(["scan", log, "--color", "never", "--width", "60"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    main(["scan", log, "--color", "auto"])
    assert "\x1b" not in capsys.readouterr().out


def test_a_problem_is_one_line_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty directory holds nothing to scan."""
    (tmp_path / "empty").mkdir()
    assert main(["scan", str(tmp_path / "empty")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("lmdiag: no log found")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("message", [("ValueError:", "serde", "a", "of", "3", "is", "not", "naive"), (MESSAGE,), ("site-serde",), (FAILED,)], ids=["words", "message", "id", "traceback"])  # fmt: skip
def test_explain(message: tuple[str, ...], rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *message, "--rules", rules, "--width", "100"]) == 0
    assert "LMCache: only the naive serde" in capsys.readouterr().out


def test_explain_reads_standard_input(
    rules: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(FAILED))
    assert main(["explain", "-", "--rules", rules]) == 0
    assert "LMCache: only the naive serde" in capsys.readouterr().out


def test_explain_says_that_nothing_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "good morning"]) == 1
    assert "lmdiag cards new" in capsys.readouterr().err


def test_cards_list_and_show(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cards", "list", "--rules", rules]) == 0
    assert "site-serde" in capsys.readouterr().out
    assert main(["cards", "show", "site-serde", "--rules", rules]) == 0
    assert "What it means." in capsys.readouterr().out


def test_an_unknown_card_is_2(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cards", "show", "site-serd", "--rules", rules]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_cards_check(rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cards", "check", rules]) == 0
    Path(rules, "site-bad.toml").write_text("title =", encoding="utf-8")
    assert main(["cards", "check", rules]) == 1
    assert "site-bad.toml" in capsys.readouterr().out
    assert main(["cards", "check", str(tmp_path / "missing")]) == 2
    assert "is not a directory" in capsys.readouterr().err


def test_cards_new(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cards", "new", "ValueError: heads (12) must be divisible by 5"]) == 0
    captured = capsys.readouterr()
    assert 'type = "ValueError"' in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "lmdiag" in capsys.readouterr().out


def test_the_completion_of_a_shell_knows_the_commands(tmp_path: Path) -> None:
    """The library argcomplete asks the program itself, through file descriptor 8 or a file."""
    answer = tmp_path / "answer"
    line = "lmdiag cards c"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}  # fmt: skip
    subprocess.run([*COMMAND], env=os.environ | asked, timeout=TIMEOUT, check=False, capture_output=True)
    assert answer.read_text(encoding="utf-8").split() == ["check"]


def test_standard_input_is_a_source(rules: str) -> None:
    done = subprocess.run([*COMMAND, "scan", "-", "--format", "jsonl", "--rules", rules], input=FAILED.encode(), timeout=TIMEOUT, check=False, capture_output=True)  # fmt: skip
    incident = json.loads(done.stdout.splitlines()[0])
    assert (done.returncode, done.stderr) == (1, b"")
    assert (incident["card"], incident["source"]) == ("site-serde", "-")


@pytest.mark.parametrize("arguments", [("scan", "{log}"), ("scan", "{log}", "--format", "jsonl"), ("cards", "list"), ("cards", "new", MESSAGE)], ids=["text", "jsonl", "list", "new"])  # fmt: skip
def test_a_closed_pipe_ends_quietly(arguments: tuple[str, ...], log: str) -> None:
    """As in `lmdiag scan server.log | head -n 0`: the reader has gone before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*COMMAND, *(argument.format(log=log) for argument in arguments)], stdout=writer, stderr=subprocess.PIPE, timeout=TIMEOUT, check=False)  # fmt: skip
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_in_the_middle_of_a_scan_prints_what_was_found(tmp_path: Path) -> None:
    """What was read from a pipe that stays open is reported, and the exit code is that of an interrupted program."""
    fifo = tmp_path / "server.fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [*COMMAND, "scan", str(fifo), "--format", "jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with fifo.open("wb", buffering=0) as pipe:  # waits until the scan has opened it
        capacity = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
        filler = b"INFO 12-01 02:00:00 [a.py:1] nothing of interest\n"
        # The write returns when all but one pipeful is taken: a second block was begun, so the first one is done.
        os.write(pipe.fileno(), FAILED.encode() + filler * (3 * capacity // len(filler)))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
    incident, summary = map(json.loads, out.splitlines())
    assert (process.returncode, err) == (130, b"")
    assert incident["root"]["message"] == MESSAGE
    assert summary["interrupted"] is True


def test_ctrl_c_while_waiting_for_the_next_input_prints_what_was_found(tmp_path: Path) -> None:
    """The first log is done; the second, a FIFO, says nothing. Opening its other end waits until it is being read."""
    log, fifo = tmp_path / "a.log", tmp_path / "b.log"
    log.write_text(raised("", "ValueError", "x y"), encoding="utf-8")
    os.mkfifo(fifo)
    with subprocess.Popen(
        [sys.executable, "-m", "lmdiag", "scan", str(log), str(fifo)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        other_end = os.open(fifo, os.O_WRONLY)
        process.send_signal(signal.SIGINT)
        report, _ = process.communicate(timeout=60)
        os.close(other_end)
    assert process.returncode == 130
    assert "ValueError: x y" in report


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_crash(closed: str, log: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m lmdiag scan "$1" {closed}', sys.executable, log], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback (most" not in done.stderr
