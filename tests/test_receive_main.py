"""`lmdiag receive` as a process, and with a real Alertmanager (apt install prometheus-alertmanager)."""

from __future__ import annotations

import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import urllib3
from planted import CREDENTIALS

from lmdiag.errors import LmdiagError
from lmdiag.receive.config import ReceiveConfig
from lmdiag.receive.main import receive

LOG = str(Path(__file__).parent / "logs" / "mla-serde-start-failed.log")
TOKEN = CREDENTIALS[0]
MISSING = "/missing/token"
RUN = """
import argparse, sys
from lmdiag.cli_receive import add_receive, run_receive
parser = argparse.ArgumentParser()
add_receive(parser.add_subparsers())
sys.exit(run_receive(parser.parse_args(["receive", *sys.argv[1:]])))
"""


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (ReceiveConfig(paths=("x.log",)), "a token is needed"),
        (ReceiveConfig(paths=("x.log",), no_token=True, listen="0.0.0.0:9478"), "can be reached from elsewhere"),
        (ReceiveConfig(paths=("x.log",), no_token=True, listen="[::]:9478"), "can be reached from elsewhere"),
        (ReceiveConfig(paths=("x.log",), no_token=True, listen="node7:9478"), "can be reached from elsewhere"),
        (ReceiveConfig(paths=("x.log",), token_file=MISSING), MISSING),
        (ReceiveConfig(no_token=True), "name the logs"),
        (ReceiveConfig(paths=("x.log",), logs="/logs/{pod}", no_token=True), "name the logs"),
        (ReceiveConfig(paths=("-",), no_token=True), "standard input"),
        (ReceiveConfig(logs="/logs/x", no_token=True), "--logs /logs/x"),
        (ReceiveConfig(paths=("x.log",), rules=("/missing",), no_token=True), "no such directory"),
    ],
)
def test_what_would_be_wrong_is_refused(config: ReceiveConfig, problem: str) -> None:
    with pytest.raises(LmdiagError) as error:
        receive(config, io.StringIO(), io.StringIO())
    assert problem in str(error.value)


@contextmanager
def running(*arguments: str, out: int | IO[bytes] = subprocess.PIPE) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the command; give the process and its URL."""
    command = [sys.executable, "-c", RUN, "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline().decode()
            assert "alerts are taken at http://127.0.0.1:" in line, line + process.stderr.read().decode()
            yield process, line.split()[-1]
        finally:
            process.kill()


def ask(url: str, token: str = "") -> str:
    body = json.dumps({"version": "4", "alerts": [{"status": "firing", "labels": {"job": "x"}}]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    answer = urllib3.request("POST", f"{url}?format=text", body=body, headers=headers, timeout=60, retries=False)
    assert answer.status == 200
    return answer.data.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_until_a_signal_ends_it(number: int) -> None:
    with running(LOG, "--no-token") as (process, url):
        assert "What to change" in ask(url)
        process.send_signal(number)
        assert process.wait(60) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b"lmdiag: 1 alert, 1 log, 1 incident\n"


def test_it_answers_though_nobody_reads_what_it_says(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    (tmp_path / "token").write_text(TOKEN)
    try:
        with running(LOG, "--token-file", str(tmp_path / "token"), out=writer) as (_, url):
            assert "What to change" in ask(url, TOKEN)
            assert "What to change" in ask(url, TOKEN)
    finally:
        os.close(writer)


def test_what_it_finds_is_forwarded_once(tmp_path: Path) -> None:
    """Alertmanager repeats itself; the second time nothing is sent."""
    sink = f"[sinks.file]\ntype = 'file'\npath = '{tmp_path}/out.jsonl'\n"
    (tmp_path / "config.toml").write_text(f"state = '{tmp_path}'\n{sink}")
    with running(LOG, "--no-token", "--forward", "--config", str(tmp_path / "config.toml")) as (_, url):
        for _ in range(2):
            assert "What to change" in ask(url)
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(line)["data"]["outcome"] == "start_failed"


def test_there_must_be_a_sink_to_forward_to(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    command = [sys.executable, "-c", RUN, LOG, "--no-token", "--forward", "--config", str(tmp_path / "config.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "ConfigError: there is no sink to forward to" in done.stderr


@contextmanager
def alertmanager(directory: Path, url: str, token_file: Path) -> Iterator[str]:
    """Run a real Alertmanager that sends everything to `url`; give its own."""
    webhook = {"url": url, "http_config": {"authorization": {"credentials_file": str(token_file)}}}
    route = {"receiver": "lmdiag", "group_wait": "0s", "group_interval": "1s", "repeat_interval": "1h"}
    config = {"route": route, "receivers": [{"name": "lmdiag", "webhook_configs": [webhook]}]}
    (directory / "am.yml").write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus-alertmanager", f"--config.file={directory}/am.yml", f"--storage.path={directory}/data"]
    log = directory / "am.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, f"--web.listen-address={own}", "--cluster.listen-address="], stdout=file, stderr=file
        )
    try:
        yield f"http://{own}"
    finally:
        process.terminate()
        process.wait(30)
    assert "level=error" not in log.read_text()


def fire(url: str, **labels: str) -> None:
    """Send an alert as Prometheus does, as soon as Alertmanager listens."""
    retries = urllib3.Retry(connect=10, backoff_factor=0.1, backoff_max=1)
    alert = {"labels": {"alertname": "VLLMDown", **labels}}
    assert urllib3.request("POST", f"{url}/api/v2/alerts", json=[alert], retries=retries).status == 200


def until_it_took_the_answer(url: str) -> None:
    """Wait until Alertmanager has counted the notification; no attempt may have failed."""
    for _ in range(1000):
        metrics = urllib3.request("GET", f"{url}/metrics").data.decode().splitlines()
        if 'alertmanager_notification_latency_seconds_count{integration="webhook"} 1' in metrics:
            assert 'alertmanager_notification_requests_failed_total{integration="webhook"} 0' in metrics
            return
    raise AssertionError("Alertmanager did not take the answer")


@pytest.mark.skipif(shutil.which("prometheus-alertmanager") is None, reason="Alertmanager is not installed")
def test_a_real_alertmanager_is_answered(tmp_path: Path) -> None:
    pod = tmp_path / "logs" / "prod_vllm-0"
    pod.mkdir(parents=True)
    shutil.copy(LOG, pod / "server.log")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    logs = f"{tmp_path}/logs/{{namespace}}_{{pod}}/*.log"
    with running("--logs", logs, "--token-file", str(token)) as (process, url):
        assert process.stdout is not None
        with alertmanager(tmp_path, url, token) as own:
            fire(own, namespace="prod", pod="vllm-0")
            assert select.select([process.stdout], [], [], 60)[0], "Alertmanager sent nothing"
            assert process.stdout.readline() == b"lmdiag: 1 alert, 1 log, 1 incident\n"
            until_it_took_the_answer(own)
