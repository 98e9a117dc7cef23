"""A real vLLM serving a tiny model on the CPU, watched while it starts, serves, fails, is killed and starts again.

LMDIAG_VLLM    the `vllm` program of an environment with vLLM's CPU build (and LMCache, for the seed error)
LMDIAG_MODEL   a directory with the models `tiny` and `mla`; made by tiny_model.py if it is not given
LMDIAG_LMCACHE a directory with the package of LMCache 0.3.9 to 0.3.12, which lets the server die of the seed error;
               without it the installed LMCache is used, and the server goes on without its cache
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_model import make_with
from watching import Report, Watch, scanned

VLLM = os.environ.get("LMDIAG_VLLM", "")
OLD_LMCACHE = os.environ.get("LMDIAG_LMCACHE", "")
READY = b"Application startup complete"
SECONDS = 180
"""Until a start has succeeded or failed; it takes 10 to 40 s where the machine is idle."""
_LMCACHE = json.dumps({"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"})
_SEED = {"LMCACHE_REMOTE_SERDE": "cachegen", "LMCACHE_REMOTE_URL": "lm://localhost:65432"}

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not VLLM, reason="LMDIAG_VLLM does not name a vllm program"),
]


class Server:
    """A `vllm serve` whose output is appended to a log."""

    def __init__(self, model: Path, log: Path, *arguments: str, **environment: str) -> None:
        self._log = log
        self._begin = log.stat().st_size if log.exists() else 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [VLLM, "serve", str(model), "--load-format", "dummy", "--enforce-eager"]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **_environment(log.parent), **environment},
                start_new_session=True,
            )

    def says(self, text: bytes) -> bool:
        """Whether the text is in the log of this start."""
        with self._log.open("rb") as file:
            file.seek(self._begin)
            return text in file.read()

    def request(self, **body: object) -> int:
        """Ask for a completion; return the HTTP status."""
        data = json.dumps({"model": "served", "prompt": "The quick brown fox", "max_tokens": 4, **body}).encode()
        url = f"http://127.0.0.1:{self.port}/v1/completions"
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def worker(self) -> int:
        """Return the process id of its worker."""
        found = [pid for pid, title in _session(self.process.pid) if "Worker" in title]
        assert found, _session(self.process.pid)
        return found[0]

    def ended(self) -> bool:
        """Whether the API server has ended."""
        return self.process.poll() is not None

    def clear(self) -> None:
        """Kill what is left of it."""
        for pid, _ in _session(self.process.pid):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


def _session(session: int) -> list[tuple[int, str]]:
    """Return the processes of a session and their titles, from /proc (man 5 proc: the session is field 6 of stat)."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            title = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session:
            found.append((int(path.name), title))
    return found


def _environment(directory: Path) -> dict[str, str]:
    """Return settings that keep vLLM and its libraries off the network and their caches in the test's directory."""
    return {
        "PATH": f"{Path(VLLM).parent}:{os.environ.get('PATH', '')}",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(directory / "huggingface"),
        "VLLM_CACHE_ROOT": str(directory / "cache"),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "LMCACHE_TRACK_USAGE": "false",
        "LMCACHE_MAX_LOCAL_CPU_SIZE": "0.5",
        "OMP_NUM_THREADS": "1",
    }


class Stage:
    """The watched log and the server that writes it."""

    def __init__(self, models: Path, directory: Path) -> None:
        self._models = models
        self.log = directory / "server.log"
        self.watch = Watch([self.log], directory, "--from", "start")
        self._servers: list[Server] = []

    def start(self, model: str, *arguments: str, **environment: str) -> Server:
        """Begin a start; the one before it must have ended."""
        assert all(server.ended() for server in self._servers)
        arguments = ("--served-model-name", "served", *arguments)
        self._servers.append(Server(self._models / model, self.log, *arguments, **environment))
        return self._servers[-1]

    def start_well(self) -> Server:
        """Start the tiny model and wait until it serves."""
        # bfloat16 would use AMX, which some virtual machines announce and do not have: the worker dies of SIGILL
        server = self.start("tiny", "--max-model-len", "256", "--dtype", "float32")
        self.watch.until(lambda: server.says(READY) or server.ended(), "the server ready", SECONDS)
        assert server.says(READY), self.log.read_text(errors="replace")[-3000:]
        return server

    def fail(self, model: str, *arguments: str, **environment: str) -> Server:
        """Start and wait until the start has failed."""
        server = self.start(model, *arguments, **environment)
        self.wait_for_end(server)
        return server

    def wait_for_end(self, server: Server) -> None:
        """Wait until a server has ended."""
        self.watch.until(server.ended, "the server ended", SECONDS)

    def interrupt(self, server: Server) -> None:
        """Press Ctrl-C and wait until the server has ended."""
        server.process.send_signal(signal.SIGINT)
        self.wait_for_end(server)

    def next(self, state: str, number: int, seconds: float = 30) -> Report:
        """Wait for the report with a number, counted from 0; it must be of a state."""
        self.watch.until(lambda: len(self.watch.incidents()) > number, f"report {number}, {state}", seconds)
        report = self.watch.incidents()[number]
        assert report.data["state"] == state, self.watch.account()
        return report

    def counted(self, card: str) -> int:
        """Return how often the daemon has seen a card's incident, as `lmdiag status` says."""
        rows = [row for row in self.watch.status().get("incidents", ()) if row["card"] == card]
        return int(rows[0]["count"]) if rows else 0

    def end(self) -> None:
        """Let nothing of it run on."""
        for server in self._servers:
            server.clear()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the models."""
    if given := os.environ.get("LMDIAG_MODEL"):
        return Path(given)
    directory = tmp_path_factory.mktemp("models")
    make_with(Path(VLLM).parent / "python", directory)
    return directory


@pytest.fixture
def stage(tmp_path: Path, models: Path) -> Iterator[Stage]:
    """A watched log, and no server yet."""
    stage = Stage(models, tmp_path)
    try:
        with stage.watch:
            yield stage
    finally:
        stage.end()


def test_its_life_is_told_as_it_happens(stage: Stage) -> None:
    server = stage.start_well()
    assert server.request() == 200
    assert server.request(max_tokens=1000) == 400
    stage.interrupt(server)

    too_long = ("--max-model-len", "100000")
    stage.fail("tiny", *too_long)
    opened = stage.next("opened", 0)  # the first report: none was made of the server that served
    assert said(opened) == ("max-model-len-above-derived", "critical", "start_failed")
    stage.fail("tiny", *too_long)
    stage.watch.until(lambda: stage.counted("max-model-len-above-derived") == 2, "the repetition counted", 30)

    server = stage.start_well()
    assert server.request() == 200
    resolved = stage.next("resolved", 1)
    assert resolved.data["id"] == opened.data["id"]
    assert resolved.data["count"] == 2

    os.kill(server.worker(), signal.SIGKILL)
    died = stage.next("opened", 2)
    assert (died.data["outcome"], died.data["severity"]) == ("died", "critical")
    assert "died unexpectedly" in died.message  # "exit code: -9", or None where vLLM has not reaped it yet
    server.process.send_signal(signal.SIGINT)
    stage.wait_for_end(server)

    server = stage.start_well()
    assert stage.next("resolved", 3).data["id"] == died.data["id"]
    stage.interrupt(server)
    assert len(stage.watch.incidents()) == 4, stage.watch.account()
    assert {one["fingerprint"] for one in scanned(stage.log)} == {opened.data["fingerprint"], died.data["fingerprint"]}


def test_the_seed_error_is_reported_with_its_card(stage: Stage) -> None:
    arguments = ("--max-model-len", "256", "--kv-transfer-config", _LMCACHE)
    environment = {**_SEED, **({"PYTHONPATH": OLD_LMCACHE} if OLD_LMCACHE else {})}
    outcome, severity = ("start_failed", "critical") if OLD_LMCACHE else ("degraded", "error")
    server = stage.start("mla", *arguments, **environment)
    opened = stage.next("opened", 0, SECONDS)
    assert said(opened) == ("lmcache-mla-naive-serde", severity, outcome)
    stage.watch.until(lambda: server.says(READY) or server.ended(), "the server ready or ended", SECONDS)
    assert server.ended() == bool(OLD_LMCACHE)
    if not server.ended():
        stage.interrupt(server)
    assert len(stage.watch.incidents()) == 1, stage.watch.account()

    stage.start_well()
    assert stage.next("resolved", 1).data["id"] == opened.data["id"]


def said(report: Report) -> tuple[Any, Any, Any]:
    """Return card, severity and outcome of a report."""
    return report.data["card"], report.data["severity"], report.data["outcome"]
