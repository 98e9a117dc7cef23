from __future__ import annotations

import pickle
from collections.abc import Iterable

import pytest
from helpers import NoCards, diagnose

from lmdiag.diagnose.stalls import Stalls, seconds_between
from lmdiag.match.library import open_library
from lmdiag.model import Incident, Line, Origin, Record
from lmdiag.pipeline import Pipeline

ZERO = "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
STALLED = f"Engine 000: {ZERO}Running: 8 reqs, Waiting: 1 reqs, GPU KV cache usage: 20.0%"
WAITING = f"Engine 000: {ZERO}Running: 0 reqs, Waiting: 5 reqs, GPU KV cache usage: 0.0%"
IDLE = f"Engine 000: {ZERO}Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%"
MOVING = STALLED.replace("generation throughput: 0.0", "generation throughput: 5.4")
V0 = f"{ZERO}Running: 0 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 99.0%, CPU KV cache usage: 0.0%."
BROADCAST = "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization)."  # fmt: skip
READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
START = "(APIServer pid=1) INFO 12-01 01:00:00 [utils.py:233] non-default args: {'model_tag': 'm'}\n"


def clock(seconds: float) -> str:
    """Seconds after 12-01 02:00:00, within the day, as vLLM prints them."""
    second = int(seconds) + 7200
    return f"12-01 {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def line(seconds: float, text: str, file: str = "loggers.py", process: str = "APIServer", level: str = "INFO") -> str:
    return f"({process} pid=1) {level} {clock(seconds)} [{file}:127] {text}\n"


def lines(times: Iterable[float], text: str = STALLED) -> str:
    return "".join(line(at, text) for at in times)


def broadcasts(times: Iterable[float]) -> str:
    return "".join(line(at, BROADCAST, "shm_broadcast.py", "EngineCore") for at in times)


def told(log: str) -> list[tuple[str, str, str]]:
    return [(item.outcome, item.severity, item.state) for item in diagnose(log)]


STALLS = {
    "running requests": READY + lines(range(0, 200, 10)),
    "waiting requests": READY + lines(range(0, 200, 10), WAITING),
    "V0": "".join(f"INFO {clock(at)} metrics.py:455] {V0}\n" for at in range(0, 200, 5)),
    "JSON": "".join(f'{{"levelname": "INFO", "name": "vllm.v1.metrics.loggers", "asctime": "2026-12-01 02:0{at // 60}:{at % 60:02d},120", "message": "{STALLED}"}}\n' for at in range(0, 200, 10)),
    "a tail only": lines(range(0, 200, 10)),
    "at DEBUG": READY + "".join(line(at, STALLED, "v1/metrics/loggers.py", level="DEBUG") for at in range(0, 200, 10)),
    "one line a minute": READY + lines(range(0, 200, 60)),
    "several engines, each in the same second": READY + "".join(line(at, text) for at in range(0, 200, 10) for text in (MOVING.replace("000", "001"), STALLED)),
    "all engines together": READY + lines(range(0, 200, 10), STALLED.replace("Engine 000", "2 Engines Aggregated")),
    "one line, and requests that go on to come": READY + line(0, STALLED) + "".join(line(at, f"Added request cmpl-{at}.", "async_llm.py") for at in range(20, 260, 30)),
    "workers that do not answer": READY + broadcasts(range(0, 200, 60)),
    "behind work": READY + lines([0], MOVING) + lines(range(10, 210, 10)),
}  # fmt: skip


@pytest.mark.parametrize("log", STALLS.values(), ids=STALLS)
def test_a_stalled_server_is_an_incident(log: str) -> None:
    (incident,) = diagnose(log)
    assert (incident.outcome, incident.severity, incident.state) == ("degraded", "error", "opened")
    assert incident.root is not None
    assert incident.root.type is None
    assert incident.root.message in log


NONE = {
    "a prefill of a minute": READY + lines(range(0, 70, 10)) + lines([70], MOVING),
    "almost three minutes": READY + lines(range(0, 180, 10)),
    "three lines": READY + lines([0, 100, 200]),
    "a healthy line in between": READY + lines(range(0, 120, 10)) + lines([120], MOVING) + lines(range(130, 250, 10)),
    "idle": READY + lines(range(0, 400, 10), IDLE),
    "idle in between": READY + lines(range(0, 120, 10)) + lines([120], IDLE) + lines(range(130, 250, 10)),
    "a gap": READY + lines([0, 10, 20, 30]) + lines([230, 240, 250]),
    "slow": READY + lines(range(0, 400, 10), MOVING),
    "one line, and silence": READY + line(0, STALLED) + line(900, "Route: /x", "launcher.py"),
    "one line, and requests that are served": READY + line(0, STALLED) + line(5, MOVING) + "".join(line(at, f"Added request cmpl-{at}.", "async_llm.py") for at in range(20, 200, 30)),
    "requests that another engine serves": READY + line(0, STALLED) + "".join(line(at, MOVING.replace("000", "001")) + line(at, "Added request x.", "async_llm.py") for at in range(20, 300, 30)),
    "no times": READY + "".join(f'{{"levelname": "INFO", "name": "vllm.v1.metrics.loggers", "message": "{STALLED}"}}\n' for _ in range(50)),
    "two broadcasts": READY + broadcasts([0, 300]),
    "broadcasts between steps": READY + "".join(broadcasts([at]) + lines([at + 5], MOVING) for at in range(0, 600, 60)),
    "workers that wait for work": READY + "".join(line(at, BROADCAST, "shm_broadcast.py", "Worker_TP0") for at in range(0, 900, 60)),
    "a start that compiles": START + broadcasts(range(0, 540, 60)) + READY,
    "a start that compiles still": START + broadcasts(range(0, 540, 60)),
}  # fmt: skip


@pytest.mark.parametrize("log", NONE.values(), ids=NONE)
def test_what_is_no_stall(log: str) -> None:
    assert diagnose(log) == []


@pytest.mark.parametrize("end", [MOVING, IDLE], ids=["tokens", "nobody waits any more"])
def test_a_stall_that_is_over_is_information(end: str) -> None:
    assert told(READY + lines(range(0, 200, 10)) + lines([200], end)) == [("degraded", "info", "resolved")]


def test_the_stall_that_goes_on_counts_not_the_one_before() -> None:
    log = READY + lines(range(0, 200, 10)) + lines([200], MOVING) + lines(range(210, 410, 10))
    assert told(log) == [("degraded", "error", "opened")]
    assert [incident.occurrences for incident in diagnose(log)] == [2]


def test_what_watches_a_server_is_told_of_the_end_of_a_stall_and_of_the_next_one() -> None:
    pipeline = Pipeline("s", NoCards())
    log = READY + lines(range(0, 200, 10)) + lines([200], MOVING) + lines(range(210, 410, 10))
    seen: list[tuple[int, bool]] = []
    for number, text in enumerate(log.split("\n"), 1):
        pipeline.feed(Line("s", number, 0, text))
        twin = pickle.loads(pickle.dumps(pipeline))  # noqa: S301
        twin.attach(NoCards())
        for finding in twin.findings():
            if (finding.occurrences, finding.over) not in seen[-1:]:
                seen.append((finding.occurrences, finding.over))
    assert seen == [(1, False), (1, True), (2, False)]


def test_a_start_that_hangs_is_unknown() -> None:
    """Nobody knows yet whether the server will come up."""
    assert told(START + broadcasts(range(0, 660, 60))) == [("unknown", "error", "opened")]


def test_a_start_that_came_up_after_all_is_information() -> None:
    assert told(START + broadcasts(range(0, 660, 60)) + READY) == [("unknown", "info", "resolved")]


def test_a_start_that_hung_is_resolved_by_one_that_does_not() -> None:
    assert told(START + broadcasts(range(0, 660, 60)) + START + READY) == [("unknown", "info", "resolved")]


def test_two_signs_of_one_stall_are_one_incident() -> None:
    (incident,) = diagnose(READY + "".join(lines([at, at + 30]) + broadcasts([at + 40]) for at in range(0, 300, 60)))
    assert incident.root is not None
    assert incident.root.message == STALLED
    assert [symptom.message for symptom in incident.symptoms] == [BROADCAST]


def test_a_stall_that_ends_in_death_is_its_symptom() -> None:
    prefix = f"(EngineCore pid=9) ERROR {clock(300)} [core.py:710] "
    death = "EngineCore encountered a fatal error.\nTraceback (most recent call last):\n  File \"/a/vllm/v1/engine/core.py\", line 699, in run_engine_core\nTimeoutError: RPC call to execute_model timed out."  # fmt: skip
    log = READY + lines(range(0, 200, 10)) + "".join(f"{prefix}{text}\n" for text in death.split("\n"))
    (incident,) = diagnose(log)
    assert (incident.outcome, incident.severity) == ("died", "critical")
    assert STALLED in [symptom.message for symptom in incident.symptoms]


def test_a_stop_by_hand_leaves_the_stall_what_it_was() -> None:
    stop = line(300, "[shutdown] API server: shutdown triggered", "launcher.py")
    assert told(READY + lines(range(0, 200, 10)) + stop) == [("degraded", "error", "opened")]


def test_a_server_that_was_told_to_stop_does_not_stall() -> None:
    stop = line(0, "[shutdown] API server: shutdown triggered", "launcher.py")
    assert told(READY + stop + lines(range(10, 210, 10))) == []


def test_the_same_stall_in_two_lives_is_repeated() -> None:
    log = START + READY + lines(range(0, 200, 10)) + START + READY + lines(range(300, 500, 10))
    assert told(log) == [("degraded", "error", "repeated")]


@pytest.mark.parametrize("at", range(0, 24, 3))
def test_the_state_can_be_pickled_between_any_two_lines(at: int) -> None:
    log = (READY + lines(range(0, 220, 10))).split("\n")
    library = open_library()
    pipeline = Pipeline("s", library)
    for number, text in enumerate(log, 1):
        if number == at:
            pipeline = pickle.loads(pickle.dumps(pipeline))  # noqa: S301
            pipeline.attach(library)
        pipeline.feed(Line("s", number, 0, text))
    assert [(item.card, item.severity) for item in pipeline.close()] == [("server-stalled", "error")]


@pytest.mark.parametrize(
    ("text", "reason"), [(STALLED, "Requests run and no step ends"), (WAITING, "Nobody runs. The first in the queue")]
)
def test_the_card_says_which_kind_it_was(text: str, reason: str) -> None:
    (incident,) = with_cards(READY + lines(range(0, 200, 10), text))
    assert incident.card == "server-stalled"
    assert incident.scope == "runtime"
    assert (incident.reason or "").startswith(reason)
    assert incident.first_seen == clock(0)
    assert incident.last_seen == clock(190)


def with_cards(log: str) -> list[Incident]:
    pipeline = Pipeline("s", open_library())
    for number, text in enumerate(log.split("\n"), 1):
        pipeline.feed(Line("s", number, 0, text))
    return pipeline.close()


TIMES = {
    "a second": ("12-01 02:00:00", "12-01 02:00:01", 1),
    "the turn of a day": ("12-01 23:59:50", "12-02 00:00:10", 20),
    "the turn of a month": ("04-30 23:59:50", "05-01 00:00:10", 20),
    "the turn of the year": ("12-31 23:59:50", "01-01 00:00:10", 20),
    "the end of February": ("02-28 23:59:50", "03-01 00:00:10", 20),
    "the end of February in a leap year": ("02-29 23:59:50", "03-01 00:00:10", 20),
    "into a leap day": ("02-28 23:59:50", "02-29 00:00:10", 20),
    "an hour": ("06-01 02:00:00", "06-01 03:00:00", 3600),
    "ISO": ("2026-12-01T02:00:00.120Z", "2026-12-01T02:00:10.450Z", 10),
    "Python's": ("2026-12-31 23:59:59,900", "2027-01-01 00:00:00,100", 1),
    "seconds": ("1764547200.5", "1764547210.25", 10),
    "milliseconds": ("1764547200500", "1764547210250", 10),
    "unreadable": ("yesterday", "12-01 02:00:01", None),
    "no month": ("13-01 02:00:00", "13-01 02:00:01", None),
    "two kinds": ("1764547200.5", "12-01 02:00:01", None),
    "seconds backwards": ("1764547210", "1764547200", None),
}


@pytest.mark.parametrize(("first", "last", "seconds"), TIMES.values(), ids=TIMES)
def test_the_time_between_two_records(first: str, last: str, seconds: float | None) -> None:
    assert seconds_between(first, last) == seconds


def test_a_clock_that_goes_back_is_no_stall() -> None:
    """Winter time: the hour comes again."""
    assert (seconds_between("10-25 02:59:50", "10-25 02:00:00") or 0) > 86_400
    assert diagnose(READY + lines([3590, 3600]) + lines([0, 10, 20])) == []


def test_a_stall_over_the_turn_of_the_year() -> None:
    stalls = Stalls()
    times = [*(f"12-31 23:{minute}:00" for minute in (58, 59)), *(f"01-01 00:0{minute}:00" for minute in (0, 1, 2))]
    for number, time in enumerate(times, 1):
        stalls.note(Record(Origin("s", number, number, "APIServer", 1), "INFO", "loggers.py", STALLED, time))
    assert [(stall.first.time, stall.last.time) for stall in stalls.found()] == [(times[0], times[-1])]


def test_what_is_kept_is_bounded() -> None:
    """A log that names ever new engines, and stalls that come and go."""
    stalls = Stalls()
    for number in range(2000):
        text = STALLED.replace("Engine 000", f"Engine {number:03d}")
        stalls.note(Record(Origin("s", number, number), "INFO", "loggers.py", text, clock(0)))
    for number in range(100):
        for text, at in ((STALLED, 0), (STALLED, 60), (STALLED, 120), (STALLED, 180), (MOVING, 190)):
            stalls.note(Record(Origin("s", number, number), "INFO", "loggers.py", text, clock(200 * number % 7000 + at)))
    assert len(pickle.dumps(stalls)) < 100_000
    assert len(stalls.found()) <= 8
