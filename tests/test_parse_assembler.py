from __future__ import annotations

import itertools

import pytest
from helpers import lines_of
from shapes import raised

from lmdiag.model import Record, Traceback
from lmdiag.parse.assembler import Assembler

CORE, API = (
    "(EngineCore pid=79) ERROR 12-01 02:00:00 [core.py:1584] ",
    "(APIServer pid=1) ERROR 12-01 02:00:00 [x.py:1] ",
)


def events(log: str, *, max_groups: int = 256) -> list[Record | Traceback]:
    assembler = Assembler("server.log", max_groups=max_groups)
    found = [event for line in lines_of(log) for event in assembler.feed(line)]
    return [*found, *assembler.close()]


def tracebacks(log: str) -> list[Traceback]:
    return [event for event in events(log) if isinstance(event, Traceback)]


def essence(found: list[Traceback]) -> list[tuple[str, str, str]]:
    """(type, message, process) of each traceback's last exception, sorted."""
    return sorted(
        (item.exceptions[-1].type or "", item.exceptions[-1].message, item.origin.process or "") for item in found
    )


def alternate(*logs: str) -> str:
    """The lines of several processes, strictly in turn."""
    rows = itertools.zip_longest(*(log.splitlines(keepends=True) for log in logs), fillvalue="")
    return "".join(itertools.chain.from_iterable(rows))


def test_a_traceback_knows_where_it_stands() -> None:
    (found,) = tracebacks(
        "INFO 12-01 02:00:00 [a.py:1] x\n" + CORE + "EngineCore failed to start.\n" + raised(CORE, "ValueError", "x y")
    )
    assert found.origin == ("server.log", 3, 9, "EngineCore", 79, "")
    assert (found.header, found.level, found.file, found.time, found.logger) == ("EngineCore failed to start.", "ERROR", "core.py", "12-01 02:00:00", "vllm")  # fmt: skip
    assert not found.truncated
    assert found.lines[-1] == "ValueError: x y"


@pytest.mark.parametrize("count", [2, 4, 8])
def test_interleaved_workers_are_kept_apart(count: int) -> None:
    logs = [
        raised(f"(Worker_TP{rank} pid={rank}) ERROR 12-01 02:00:00 [x.py:1] ", "ValueError", f"x {rank}")
        for rank in range(count)
    ]
    found = tracebacks(alternate(*logs))
    assert essence(found) == [("ValueError", f"x {rank}", f"Worker_TP{rank}") for rank in range(count)]
    assert {len(item.exceptions[0].frames) for item in found} == {2}


def test_two_api_servers_interleave() -> None:
    found = tracebacks(
        alternate(raised("(ApiServer_0 pid=5) ", "ValueError", "a"), raised("(ApiServer_1 pid=6) ", "ValueError", "b"))
    )
    assert [(item.origin.process, item.exceptions[0].message) for item in found] == [
        ("ApiServer_0", "a"),
        ("ApiServer_1", "b"),
    ]


def test_a_process_that_was_restarted_is_another_one() -> None:
    found = tracebacks(
        alternate(raised("(EngineCore pid=5) ", "ValueError", "a"), raised("(EngineCore pid=6) ", "ValueError", "b"))
    )
    assert [(item.origin.pid, item.exceptions[0].message) for item in found] == [(5, "a"), (6, "b")]


def test_stderr_in_the_middle_of_the_same_process_record() -> None:
    """Without prefixes of processes (0.9) the raw echo lands anywhere in the record."""
    record = raised("ERROR 05-06 01:55:26 [core.py:383] ", "ValueError", "x y")
    found = tracebacks(alternate(record, "Process EngineCore_0:\n" + raised("", "ValueError", "x y")))
    assert [item.exceptions[0].message for item in found] == ["x y", "x y"]
    assert {item.logger for item in found} == {"vllm", "bare"}


def test_records_of_others_inside_a_bare_traceback() -> None:
    lines = raised("", "ValueError", "x y").splitlines(keepends=True)
    log = "".join(line + "(APIServer pid=1) INFO 12-01 02:00:00 [x.py:1] waiting\n" for line in lines)
    assert essence(tracebacks(log)) == [("ValueError", "x y", "")]


def test_a_message_of_several_lines_ends_with_its_record() -> None:
    message = "Invalid repository ID:\n\n1. one\nProse that looks like nothing."
    log = (
        raised(CORE, "ValueError", message) + "(EngineCore pid=79) ERROR 12-01 02:00:00 [core.py:1590] Something else\n"
    )
    (found,) = tracebacks(log)
    assert found.exceptions[0].message == message


def test_a_message_that_imitates_a_record_stays_a_message() -> None:
    message = f"no model\n{API}failed\nTraceback (most recent call last):"
    assert {event.origin.process for event in events(raised(CORE, "KeyError", message))} == {"EngineCore"}


def test_a_second_may_tick_within_a_record() -> None:
    log = raised(CORE, "ValueError", "x y").splitlines(keepends=True)
    log[3:] = [line.replace("02:00:00", "02:00:01") for line in log[3:]]
    (found,) = tracebacks("".join(log))
    assert len(found.exceptions[0].frames) == 2


def test_a_killed_process_leaves_a_truncated_traceback() -> None:
    lines = raised(CORE, "ValueError", "x y").splitlines(keepends=True)[:-2]
    (found,) = tracebacks("".join(lines))
    assert (found.truncated, found.exceptions) == (True, ())


def test_a_missing_head_is_truncated() -> None:
    lines = raised(CORE, "ValueError", "x y").splitlines(keepends=True)[2:]
    (found,) = tracebacks("".join(lines))
    assert found.truncated
    assert found.exceptions[0].message == "x y"


def test_services_of_one_file_are_named() -> None:
    log = alternate(raised("vllm-1  | ", "ValueError", "a"), raised("vllm-2  | ", "ValueError", "b"))
    assert [(item.origin.service, item.exceptions[0].message) for item in tracebacks(log)] == [
        ("vllm-1", "a"),
        ("vllm-2", "b"),
    ]


def test_ranks_and_the_units_pid_are_no_services() -> None:
    """They name the processes of one server; a journal tells of one unit, of systemd and of the kernel."""
    log = raised("[rank0]: ", "ValueError", "a") + raised("Aug 17 18:42:18 host vllm[8052]: ", "ValueError", "b")
    assert [item.origin.service for item in tracebacks(log)] == ["", ""]


def test_records_that_matter_are_given_and_chatter_is_not() -> None:
    log = (
        "(APIServer pid=1) INFO 12-01 02:00:00 [utils.py:326] non-default args: {'model': 'm'}\n"
        "(APIServer pid=1) INFO 12-01 02:00:00 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s\n"
        "(APIServer pid=1) INFO:     Application startup complete.\n"
        "(EngineCore pid=7) ERROR 12-01 02:00:00 [x.py:1] It is\n"
        "(EngineCore pid=7) ERROR 12-01 02:00:00 [x.py:1] broken\n"
    )
    found = [(event.logger, event.level, event.text) for event in events(log) if isinstance(event, Record)]
    assert ("vllm", "INFO", "non-default args: {'model': 'm'}") in found
    assert ("uvicorn", "INFO", "Application startup complete.") in found
    assert ("vllm", "ERROR", "It is\nbroken") in found
    assert not any("throughput" in text for *_, text in found)


def test_a_usage_error_is_a_record() -> None:
    (found,) = events("usage: vllm serve [options]\nvllm serve: error: argument --dtype: invalid choice: 'x'\n")
    assert isinstance(found, Record)
    assert (found.logger, found.level, found.text) == ("argparse", "ERROR", "vllm serve: error: argument --dtype: invalid choice: 'x'")  # fmt: skip


def test_the_record_with_a_note_holds_two_tracebacks() -> None:
    """`WorkerProc hit an exception` adds its traceback a second time as a note."""
    head = "(Worker pid=3) ERROR 12-01 03:00:00 [multiproc_executor.py:953] "
    found = tracebacks(head + "WorkerProc hit an exception.\n" + 2 * raised(head, "ValueError", "x y"))
    assert [item.exceptions[0].message for item in found] == ["x y", "x y"]


def test_the_bound_on_groups_finishes_the_one_that_was_silent_longest() -> None:
    logs = "".join(raised(f"(W pid={pid}) ", "ValueError", f"x {pid}") for pid in range(40))
    assembler = Assembler("server.log", max_groups=4)
    early = [event for line in lines_of(logs) for event in assembler.feed(line)]
    rest = list(assembler.close())
    assert len(rest) <= 4
    assert len(early) + len(rest) == assembler.tracebacks == 40


def test_what_is_read_is_counted() -> None:
    assembler = Assembler("server.log")
    for line in lines_of(API + "one\n" + raised(CORE, "ValueError", "x y") + API + "two\n"):
        list(assembler.feed(line))
    list(assembler.close())
    assert assembler.tracebacks == 1
    assert assembler.records >= 1


def test_a_cut_line_marks_what_it_is_part_of() -> None:
    assembler = Assembler("server.log")
    lines = [
        line._replace(truncated="ValueError" in line.text)
        for line in lines_of(raised(CORE, "ValueError", "x y").rstrip())
    ]
    found = [event for line in lines for event in assembler.feed(line)] + list(assembler.close())
    assert [event.truncated for event in found if isinstance(event, Traceback)] == [True]
