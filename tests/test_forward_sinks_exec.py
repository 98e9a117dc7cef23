"""The exec sink: what a program gets, what its end means, and that no program can hang or flood the daemon."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from messages import NOW, message, summary
from planted import CREDENTIALS, assert_clean

from lmdiag.config import SinkConfig
from lmdiag.forward.data import record
from lmdiag.forward.message import DELIVERED, REJECTED, RETRY, Outcome
from lmdiag.forward.sinks.exec import ExecSink, make

LARGE = message(change=lambda incident: incident._replace(evidence=("x" * (1 << 20),)))
"""More than a pipe holds."""
LMDIAG = {
    "LMDIAG_KEY": "key-opened",
    "LMDIAG_STATE": "opened",
    "LMDIAG_SEVERITY": "critical",
    "LMDIAG_CARD": "lmcache-mla-layerwise",
    "LMDIAG_INSTANCE": "node7",
}


def sink(*command: str, **changes: Any) -> ExecSink:
    return make(SinkConfig("x", "exec", command=command)._replace(**changes))


def run(script: str, **changes: Any) -> Outcome:
    """Run a shell's script; the sink itself uses none."""
    return sink("/bin/sh", "-c", script, **changes).send([message()], NOW)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_the_program_reads_the_line_of_the_file_sink(tmp_path: Path) -> None:
    assert run(f"cat > {tmp_path}/got") == Outcome(DELIVERED)
    assert (tmp_path / "got").read_text() == record(message())


def test_a_large_message_arrives_whole(tmp_path: Path) -> None:
    assert sink("/bin/sh", "-c", f"cat > {tmp_path}/got").send([LARGE], NOW).result == DELIVERED
    assert (tmp_path / "got").read_text() == record(LARGE)


@pytest.mark.parametrize("script", ["exit 0", "head -c 10", "exec <&-; exit 0"])
def test_a_program_need_not_read(script: str) -> None:
    assert sink("/bin/sh", "-c", script).send([LARGE], NOW).result == DELIVERED


def test_it_knows_the_message_by_its_environment_and_nothing_else_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "LMDIAG_STATE_DIR", "LD_PRELOAD_X"):
        monkeypatch.setenv(name, CREDENTIALS[0])
    monkeypatch.setenv("TZ", "Europe/Rome")
    assert run(f"env > {tmp_path}/got").result == DELIVERED
    lines = (tmp_path / "got").read_text()
    assert_clean(lines, "the environment")
    variables = dict(line.split("=", 1) for line in lines.splitlines())
    assert set(variables) - {"PWD", "SHLVL", "_", "OLDPWD"} <= {"PATH", "HOME", "LANG", "TZ", *LMDIAG}  # a shell's own
    assert {name: variables[name] for name in LMDIAG} == LMDIAG
    assert variables["TZ"] == "Europe/Rome"


def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    outcome = sink("/bin/echo", "$HOME", "; touch x", f"`touch {tmp_path}/x`").send([message()], NOW)
    assert outcome.answer == f"$HOME ; touch x `touch {tmp_path}/x`"
    assert list(tmp_path.iterdir()) == []


def test_the_program_is_found_in_the_path() -> None:
    assert sink("true").send([message()], NOW).result == DELIVERED


@pytest.mark.parametrize(
    ("script", "result", "detail"),
    [
        ("exit 65", REJECTED, "/bin/sh exited with 65"),
        ("echo no; echo 'disk  full' >&2; exit 1", RETRY, "/bin/sh exited with 1: disk  full"),
        ("kill -9 $$", RETRY, "/bin/sh was ended by signal 9"),
        ("printf 'a\\033[31mb\\007\\000c\\n'; exit 3", RETRY, "/bin/sh exited with 3: abc"),
        ("exit 75", RETRY, "/bin/sh exited with 75"),
    ],
)
def test_what_its_end_means(script: str, result: str, detail: str) -> None:
    outcome = run(script)
    assert (outcome.result, outcome.detail) == (result, detail)


@pytest.mark.parametrize("command", ["/missing/program", "/etc/hostname", "a\0b"])
def test_a_program_that_cannot_be_run_is_tried_again(command: str) -> None:
    outcome = sink(command).send([message()], NOW)
    assert outcome.result == RETRY
    assert "cannot be run" in outcome.detail
    assert "\0" not in outcome.detail


def test_a_program_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    outcome = run(f"sleep 1000 & echo $! > {tmp_path}/child; echo waiting; wait", timeout=0.3)
    assert outcome == Outcome(RETRY, "/bin/sh was killed after 0.3 s: waiting", answer="waiting")
    assert not is_alive(int((tmp_path / "child").read_text()))


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    outcome = run(f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.01; done", timeout=0.3)
    assert outcome.result == RETRY
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_it_can_end_in_an_orderly_way_at_sigterm(tmp_path: Path) -> None:
    run(f"trap 'echo bye > {tmp_path}/bye; exit' TERM; while :; do sleep 0.01; done", timeout=0.3)
    assert (tmp_path / "bye").read_text() == "bye\n"


def test_what_it_leaves_behind_is_neither_waited_for_nor_killed(tmp_path: Path) -> None:
    """The child holds the pipe open for as long as it lives."""
    outcome = run(f"sleep 1000 & echo $! > {tmp_path}/child; echo done", timeout=60)
    child = int((tmp_path / "child").read_text())
    assert outcome == Outcome(DELIVERED, answer="done")
    assert is_alive(child)
    os.kill(child, signal.SIGKILL)


def test_endless_output_is_bounded() -> None:
    outcome = run("yes; exit 0", timeout=0.5)
    assert outcome.result == RETRY
    assert 0 < len(outcome.answer) <= 16 << 10


def test_much_output_does_not_stop_a_program_and_its_end_is_kept() -> None:
    outcome = run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 4", timeout=60)
    assert outcome.detail == "/bin/sh exited with 4: the end"
    assert len(outcome.answer) <= 16 << 10


def test_output_that_is_no_text_is_shown() -> None:
    assert run("printf '\\377\\376x'; exit 1").detail == "/bin/sh exited with 1: ��x"


def test_signals_have_their_default_meaning() -> None:
    """Python ignores SIGPIPE; a program that inherited that would not end when its reader does."""
    ignored = "import signal; print(signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGXFSZ))"
    answer = run(f"grep -h SigIgn /proc/self/status; {sys.executable} -c '{ignored}' >/dev/null").answer
    assert int(answer.split()[1], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0


def test_it_inherits_no_descriptor() -> None:
    with open("/etc/hostname") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 (the name is in the function's)
        answer = run("ls /proc/self/fd | wc -l").answer
    assert answer == "4"  # standard ones, and the directory that ls reads


def test_it_has_a_session_of_its_own() -> None:
    session = run("ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/self/stat").answer
    assert int(session) != os.getsid(0)


def test_a_summary_says_so() -> None:
    outcome = sink("/bin/sh", "-c", 'grep -q summary_of_incidents && echo "$LMDIAG_SEVERITY"').send([summary()], NOW)
    assert outcome == Outcome(DELIVERED, answer="critical")


def test_a_preview_runs_nothing(tmp_path: Path) -> None:
    shown = sink("/usr/bin/touch", f"{tmp_path}/a b").preview([message()], NOW)
    assert f"/usr/bin/touch '{tmp_path}/a b'" in shown
    assert "LMDIAG_KEY=key-opened" in shown
    assert record(message()) in shown
    assert list(tmp_path.iterdir()) == []


def test_no_descriptor_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    run("exit 1")
    run("sleep 1000", timeout=0.1)
    sink("/missing/program").send([message()], NOW)
    assert len(os.listdir("/proc/self/fd")) == before
