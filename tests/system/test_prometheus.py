"""A real Prometheus scrapes the metrics; needs `prometheus` (apt install prometheus)."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmdiag.watch.counters import Counters, DaemonStatus, SourceStatus
from lmdiag.watch.metrics import MetricsServer, Monitor

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed"),
]
RULES = """
groups:
- name: lmdiag
  interval: 1s
  rules:
  - alert: NewIncident
    expr: increase(lmdiag_card_incidents_total[1m]) > 0
"""


@pytest.fixture
def monitor() -> Monitor:
    counters = Counters()
    counters.know_cards([("a-card", "critical"), ("b-card", "error")])
    counters.know_source('/var/log/"odd\\name".log')
    source = SourceStatus('/var/log/"odd\\name".log', "file")
    return Monitor(counters, DaemonStatus(1, "1.2.3", 1.0, 1.0, (source,)))


@pytest.fixture
def prometheus(monitor: Monitor, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that scrapes the monitor each second."""
    server = MetricsServer("127.0.0.1:0", monitor)
    (tmp_path / "rules.yml").write_text(RULES)
    target = json.dumps({"job_name": "lmdiag", "static_configs": [{"targets": [server.address]}]})
    (tmp_path / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s}}\nrule_files: [rules.yml]\nscrape_configs: [{target}]\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stderr=log, stdout=log)
    try:
        until(lambda: ask(address, "query", "up") is not None)
        yield address
    finally:
        process.terminate()
        process.wait(30)
        server.close()


def ask(address: str, what: str, query: str = "") -> Any:
    """The `data` of an answer of the HTTP API; None while it does not answer."""
    url = f"http://{address}/api/v1/{what}?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)["data"]
    except (urllib.error.URLError, ConnectionError):
        return None


def values(address: str, query: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The series that a query gives, without the labels of the scrape."""
    told = ("card", "source", "reason", "severity", "version")
    return {
        tuple((key, value) for key, value in sorted(one["metric"].items()) if key in told): float(one["value"][1])
        for one in ask(address, "query", query)["result"]
    }


def until(holds: Callable[[], object]) -> None:
    """Wait for something in another process."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "Prometheus did not get there in 30 s"
        time.sleep(0.2)


def firing(address: str) -> set[str]:
    """The cards for which the alert fires."""
    return {alert["labels"]["card"] for alert in ask(address, "alerts")["alerts"] if alert["state"] == "firing"}


def test_the_first_hit_of_a_card_fires(prometheus: str, monitor: Monitor) -> None:
    card = "lmdiag_card_incidents_total"
    until(lambda: values(prometheus, f'count_over_time({card}{{card="a-card"}}[1m]) >= 2'))
    assert values(prometheus, f'{card}{{card="a-card"}}') == {(("card", "a-card"), ("severity", "critical")): 0}
    odd = '/var/log/"odd\\name".log'
    dropped = values(prometheus, 'lmdiag_dropped_total{reason="flood"}')
    assert dropped == {(("reason", "flood"), ("source", odd)): 0}
    assert firing(prometheus) == set()
    monitor.counters.add_incident("a-card", "error", odd)
    until(lambda: firing(prometheus) == {"a-card"})
    assert values(prometheus, "lmdiag_build_info") == {(("version", "1.2.3"),): 1}
    assert ask(prometheus, "targets")["activeTargets"][0]["health"] == "up"
