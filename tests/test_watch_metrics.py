from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lmdiag import http_server
from lmdiag.errors import UsageError
from lmdiag.forward.status import SinkStatus
from lmdiag.settings.values import address
from lmdiag.watch.counters import Counters, DaemonStatus, IncidentStatus, SourceStatus
from lmdiag.watch.metrics import MetricsServer, Monitor

HOSTILE = 'a"b\\c\nd{}\x1b[2J\udcff'


class Clock:
    """The time, as the test sets it."""

    now = 1000.0

    def __call__(self) -> float:
        """The time in unix seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def monitor(clock: Clock) -> Monitor:
    counters = Counters()
    counters.know_cards([("a-card", "critical")])
    counters.know_source("a.log")
    source = SourceStatus("a.log", "file", lag=7, last_line_at=990.0, required=True)
    return Monitor(counters, DaemonStatus(1, "1.2.3", 900.0, 1000.0, (source,)), clock=clock)


@pytest.fixture
def server(monitor: Monitor) -> Iterator[MetricsServer]:
    running = MetricsServer("127.0.0.1:0", monitor)
    yield running
    running.close()


def get(server: MetricsServer, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.address, timeout=10)
    connection.request(method, path)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def samples(monitor: Monitor) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    _, body = monitor.metrics("")
    families = text_string_to_metric_families(body.decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def test_every_series_is_born_at_zero(monitor: Monitor) -> None:
    found = samples(monitor)
    assert found["lmdiag_card_incidents_total", (("card", "a-card"), ("severity", "critical"))] == 0
    assert found["lmdiag_card_incidents_total", (("card", "none"), ("severity", "error"))] == 0
    assert found["lmdiag_incidents_total", (("severity", "error"), ("source", "a.log"))] == 0
    assert found["lmdiag_dropped_total", (("reason", "flood"), ("source", "a.log"))] == 0
    assert found["lmdiag_reports_total", (("state", "resolved"),)] == 0
    assert found["lmdiag_muted_patterns_total", ()] == 0
    assert found["lmdiag_open_incidents", (("severity", "critical"),)] == 0


def test_what_is_counted_is_shown(monitor: Monitor) -> None:
    counters = monitor.counters
    counters.add_incident("a-card", "warning", "a.log")
    counters.add_lines("a.log", 3, 33)
    counters.add_dropped("a.log", "flood", 5)
    counters.add_report("opened")
    counters.muted_patterns = 2
    counters.stepped(999.0)
    found = samples(monitor)
    assert found["lmdiag_card_incidents_total", (("card", "a-card"), ("severity", "critical"))] == 1
    assert found["lmdiag_incidents_total", (("severity", "warning"), ("source", "a.log"))] == 1
    assert found["lmdiag_lines_total", (("source", "a.log"),)] == 3
    assert found["lmdiag_bytes_total", (("source", "a.log"),)] == 33
    assert found["lmdiag_dropped_total", (("reason", "flood"), ("source", "a.log"))] == 5
    assert found["lmdiag_reports_total", (("state", "opened"),)] == 1
    assert found["lmdiag_muted_patterns_total", ()] == 2
    assert found["lmdiag_loop_last_step_timestamp_seconds", ()] == 999
    assert found["lmdiag_source_lag_bytes", (("source", "a.log"),)] == 7
    assert found["lmdiag_source_last_line_timestamp_seconds", (("source", "a.log"),)] == 990
    assert found["lmdiag_build_info", (("version", "1.2.3"),)] == 1


def test_the_status_is_shown(monitor: Monitor) -> None:
    incident = IncidentStatus("i", "opened", "error", None, "t", "a.log", 1, 1.0, 1.0, "died")
    sources = (SourceStatus("a.log", "file"), SourceStatus("b.log", "file", problem="it does not exist"))
    resolved = incident._replace(state="resolved")
    monitor.update(monitor.status._replace(sources=sources, incidents=(incident, incident, resolved), queue=4))
    found = samples(monitor)
    assert found["lmdiag_source_up", (("source", "a.log"),)] == 1
    assert found["lmdiag_source_up", (("source", "b.log"),)] == 0
    assert found["lmdiag_open_incidents", (("severity", "error"),)] == 2
    assert found["lmdiag_reports_pending", ()] == 4


def test_sinks_are_shown(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    results = (("delivered", 5), ("retry", 2), ("rejected", 1), ("gone", 0))
    bad = SinkStatus("oncall", "slack", 3, 1, 940.0, "connection refused", results, (("waiting", 0), ("dead", 4)))
    monitor.update(monitor.status._replace(sinks=(bad, SinkStatus("well", "file"))))
    found = samples(monitor)
    oncall = ("sink", "oncall")
    assert found["lmdiag_deliveries_total", (("result", "delivered"), oncall)] == 5
    assert found["lmdiag_deliveries_total", (("result", "gone"), oncall)] == 0
    assert found["lmdiag_outbox_dropped_total", (("reason", "dead"), oncall)] == 4
    assert found["lmdiag_outbox_waiting", (oncall,)] == 3
    assert found["lmdiag_outbox_dead", (oncall,)] == 1
    assert found["lmdiag_outbox_oldest_waiting_seconds", (oncall,)] == 60
    assert found["lmdiag_outbox_oldest_waiting_seconds", (("sink", "well"),)] == 0
    assert found["lmdiag_sink_up", (oncall,)] == 0
    assert found["lmdiag_sink_up", (("sink", "well"),)] == 1


def test_any_name_of_a_source_is_a_label(monitor: Monitor) -> None:
    name = HOSTILE.replace("\udcff", "")
    monitor.counters.add_lines(name, 1, 1)
    assert samples(monitor)["lmdiag_lines_total", (("source", name),)] == 1


def test_undecodable_names_do_not_break_the_scrape(monitor: Monitor) -> None:
    monitor.counters.know_source(HOSTILE)
    monitor.update(monitor.status._replace(sources=(SourceStatus(HOSTILE, "file", problem="x"),)))
    _, body = monitor.metrics("application/openmetrics-text; version=1.0.0")
    assert b"lmdiag_lines_total" in body


def test_scraping_while_the_loop_counts(monitor: Monitor) -> None:
    def count() -> None:
        for number in range(3000):
            monitor.counters.know_source(str(number % 200))
            if number % 200 == 199:
                for known in range(200):
                    monitor.counters.forget_source(str(known))

    thread = threading.Thread(target=count)
    thread.start()
    while thread.is_alive():
        assert b"lmdiag_lines_total" in monitor.metrics("")[1]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_no_fault(monitor: Monitor) -> None:
    _, body = monitor.metrics("")
    done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_over_http(server: MetricsServer) -> None:
    code, body = get(server, "/metrics?name=x")
    assert code == 200
    assert "# TYPE lmdiag_lines_total counter\n" in body
    assert "process_resident_memory_bytes" in body
    assert get(server, "/metrics", "HEAD") == (200, "")
    assert get(server, "/healthz") == (200, "ok\n")
    assert get(server, "/")[0] == 404
    assert get(server, "/metrics/../etc/passwd")[0] == 404
    assert get(server, "/metrics", "POST")[0] == 501


def test_a_path_that_is_no_url_is_not_found_and_not_a_fault(
    server: MetricsServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert get(server, "//[x")[0] == 404
    assert capfd.readouterr() == ("", "")


def test_a_required_source_that_is_gone_makes_health_red(server: MetricsServer, monitor: Monitor, clock: Clock) -> None:
    gone = SourceStatus("a.log", "file", problem="it does\nnot \x1b[31mexist", required=True)
    monitor.update(monitor.status._replace(sources=(gone,)))
    assert get(server, "/healthz")[0] == 200
    clock.now += 16
    assert get(server, "/healthz") == (503, "a.log: it does not exist (for 16 s)\n")


def test_a_stuck_loop_makes_health_red(server: MetricsServer, monitor: Monitor, clock: Clock) -> None:
    monitor.counters.stepped(clock.now)
    assert get(server, "/healthz")[0] == 200
    clock.now += 31
    assert get(server, "/healthz")[0] == 503


def test_silent_clients_take_no_more_than_a_few_threads(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server._Handler, "timeout", 60.0)
    host, port = address(server.address) or ("", 0)
    before = threading.active_count()
    silent = [socket.create_connection((host, port), timeout=10) for _ in range(12)]
    # Those beyond the bound are turned away at once.
    assert silent[-1].recv(1) == b""
    assert threading.active_count() - before <= 4
    for one in silent:
        one.close()


def test_slow_clients_are_cut_off(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server._Handler, "timeout", 60.0)
    monkeypatch.setattr(http_server, "_REQUEST_SECONDS", 0.0)
    with socket.create_connection(address(server.address) or ("", 0), timeout=10) as slow:
        slow.sendall(b"GET /metr")
        assert slow.recv(1) == b""


def test_an_address_that_is_taken_is_named(server: MetricsServer, monitor: Monitor) -> None:
    with pytest.raises(UsageError, match=rf"{server.address}.*`listen`"):
        MetricsServer(server.address, monitor)


def test_prometheus_client_is_loaded_by_the_first_scrape_only() -> None:
    code = "import sys, lmdiag.watch.metrics, lmdiag.watch.status; print('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"
