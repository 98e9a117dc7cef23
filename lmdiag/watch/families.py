"""The counters and the status as Prometheus' metric families; imported with the first scrape."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from lmdiag.model import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prometheus_client.core import Metric

    from lmdiag.forward.status import SinkStatus
    from lmdiag.watch.counters import Counters, DaemonStatus, SourceStatus


class Families(Collector):
    """Makes the families anew at each scrape. Maps are copied first: the loop goes on adding meanwhile."""

    def __init__(self, counters: Counters, status: Callable[[], DaemonStatus]) -> None:
        self._counters = counters
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield the families; prometheus_client escapes the labels' values."""
        status = self._status()
        yield from self._incidents()
        yield from self._sources()
        yield from _source_gauges(status.sources)
        yield from self._daemon(status)
        yield from _sinks(status.sinks)

    def _incidents(self) -> Iterator[Metric]:
        counters = self._counters
        cards = counters.cards.copy()
        yield _counter(
            "lmdiag_card_incidents",
            "Incidents opened, by card; the severity is the card's own.",
            ("card", "severity"),
            (((card, counters.severities.get(card, "error")), count) for card, count in cards.items()),
        )
        yield _counter(
            "lmdiag_incidents",
            "Incidents opened, by source and by the severity that they had there.",
            ("source", "severity"),
            counters.incidents.copy().items(),
        )

    def _sources(self) -> Iterator[Metric]:
        counters = self._counters
        yield _by_source("lmdiag_lines", "Lines read.", counters.lines)
        yield _by_source("lmdiag_bytes", "Bytes read.", counters.bytes)
        yield _by_source("lmdiag_records", "Records that the lines were put together to.", counters.records)
        yield _by_source("lmdiag_tracebacks", "Tracebacks read.", counters.tracebacks)
        yield _counter(
            "lmdiag_dropped",
            "Bytes or entries that were not read or not looked at, by reason.",
            ("source", "reason"),
            counters.dropped.copy().items(),
        )

    def _daemon(self, status: DaemonStatus) -> Iterator[Metric]:
        counters = self._counters
        opened = dict.fromkeys(SEVERITIES, 0)
        for incident in status.incidents:
            if incident.state != "resolved" and incident.severity in opened:
                opened[incident.severity] += 1
        yield _gauge(
            "lmdiag_open_incidents", "Incidents that are open, of the newest 50.", ("severity",), _single(opened)
        )
        yield GaugeMetricFamily("lmdiag_reports_pending", "Reports that wait to be given out.", status.queue)
        yield _counter("lmdiag_reports", "Reports given out.", ("state",), _single(counters.reports))
        muted = "Patterns of cards that were stopped because they took too long."
        yield CounterMetricFamily("lmdiag_muted_patterns", muted, counters.muted_patterns)
        yield CounterMetricFamily("lmdiag_wakeups", "Times that the loop was woken.", counters.wakeups)
        stepped = "When the loop last went round, in unix seconds."
        yield GaugeMetricFamily("lmdiag_loop_last_step_timestamp_seconds", stepped, counters.last_step or 0)
        bad = "1 while the configuration cannot be loaded and the last good one is in use."
        yield GaugeMetricFamily("lmdiag_config_problem", bad, bool(status.config_problem))
        version = (((status.version,), 1),)
        yield _gauge("lmdiag_build_info", "The version that runs; always 1.", ("version",), version)


def _source_gauges(sources: Sequence[SourceStatus]) -> Iterator[Metric]:
    label = ("source",)
    lag = (((source.name,), source.lag) for source in sources)
    yield _gauge("lmdiag_source_lag_bytes", "Bytes that lie there unread, as far as known.", label, lag)
    up = (((source.name,), not source.problem) for source in sources)
    yield _gauge("lmdiag_source_up", "1 while the source can be read.", label, up)
    last = (((source.name,), source.last_line_at) for source in sources if source.last_line_at)
    told = "When the last line was read, in unix seconds."
    yield _gauge("lmdiag_source_last_line_timestamp_seconds", told, label, last)


def _sinks(sinks: Sequence[SinkStatus]) -> Iterator[Metric]:
    yield _counter(
        "lmdiag_deliveries",
        "Attempts to deliver, in messages, by what came of them; retry: it is tried again.",
        ("sink", "result"),
        (((sink.name, result), count) for sink in sinks for result, count in sink.results),
    )
    yield _counter(
        "lmdiag_outbox_dropped",
        "Messages that were dropped undelivered because the outbox is bounded, by what they were.",
        ("sink", "reason"),
        (((sink.name, status), count) for sink in sinks for status, count in sink.lost),
    )
    waiting = (((sink.name,), sink.waiting) for sink in sinks)
    yield _gauge("lmdiag_outbox_waiting", "Messages that wait to be delivered.", ("sink",), waiting)
    dead = (((sink.name,), sink.dead) for sink in sinks)
    yield _gauge("lmdiag_outbox_dead", "Dead letters: they were refused, or tried for 24 hours.", ("sink",), dead)
    now = time.time()
    age = (((sink.name,), max(0.0, now - sink.oldest_at) if sink.oldest_at else 0.0) for sink in sinks)
    yield _gauge("lmdiag_outbox_oldest_waiting_seconds", "For how long the oldest message waits.", ("sink",), age)
    up = (((sink.name,), not sink.problem) for sink in sinks)
    yield _gauge("lmdiag_sink_up", "1 unless the last attempt to deliver failed.", ("sink",), up)


def _by_source(name: str, told: str, counts: Mapping[str, int]) -> Metric:
    return _counter(name, told, ("source",), _single(counts))


def _single(counts: Mapping[str, int]) -> Iterable[tuple[tuple[str, ...], int]]:
    return [((key,), count) for key, count in list(counts.items())]


def _counter(name: str, told: str, labels: Sequence[str], series: Iterable[tuple[Sequence[str], float]]) -> Metric:
    """Build a counter, whose name gets `_total` behind it."""
    family = CounterMetricFamily(name, told, labels=labels)
    for values, count in series:
        family.add_metric([_encodable(value) for value in values], count)
    return family


def _gauge(name: str, told: str, labels: Sequence[str], series: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=labels)
    for values, value in series:
        family.add_metric([_encodable(one) for one in values], value)
    return family


def _encodable(text: str) -> str:
    """Write the bytes of a path that are no UTF-8 as escapes: the scrape as a whole would fail of them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
