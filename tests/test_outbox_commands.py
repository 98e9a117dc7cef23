"""What an operator sees of the outbox, and does to it."""

from __future__ import annotations

import fcntl
import io
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from forwarding import cards, incident, put, report
from messages import NOW, message, summary
from planted import CREDENTIALS, assert_clean
from receiver import Answer, Receiver

from lmdiag.config import SinkConfig, WatchConfig
from lmdiag.errors import StateError, UsageError
from lmdiag.forward.forwarder import Forwarder, Told
from lmdiag.forward.message import Message
from lmdiag.forward.outbox import DEAD, DELIVERED, STATUSES, WAITING, Outbox
from lmdiag.outbox_commands import Chosen, drop, list_deliveries, retry, show

TITLE = report("a").incident.title


def titled(name: str, title: str, state: str = "opened") -> Message:
    """Return a message whose incident has a title of its own."""
    one = report(name, state)
    return one._replace(incident=one.incident._replace(title=title))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The outbox of a daemon that is gone: two wait, one is dead, one delivered, one in a summary that waits."""
    with closing(Outbox(str(tmp_path))) as outbox:
        put(outbox, titled("a", "Out of memory"), titled("b", "Bad \x1b[31mdtype"), titled("c", "Still open"), titled("d", "Part of it"), sink="slack")
        put(outbox, titled("a", "Out of memory"), sink="pager", now=NOW - 7200)
        first, bad, done, storm = outbox.waiting("slack", 9)
        outbox.postpone(first, NOW + 90, "connection refused by 127.0.0.1:9")
        outbox.finish([bad], DEAD, NOW, "HTTP 400: \x1b[2Jno such\x07 channel")
        outbox.finish([done], DELIVERED, NOW)
        outbox.merge([storm], summary(5, left_out=3), NOW)
    return tmp_path


@pytest.fixture
def running(state: Path) -> Iterator[Path]:
    """The same while a daemon runs."""
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield state


def clock() -> float:
    return NOW + 60


def listed(directory: Path, sink: str = "", style: str = "text", *, done: bool = False) -> str:
    out, err = io.StringIO(), io.StringIO()
    assert list_deliveries(str(directory), sink, style, False, 1000, out, err, done=done, clock=clock) == 0  # noqa: FBT003
    assert err.getvalue() == ""
    return out.getvalue()


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def items(text: str) -> list[str]:
    """Return the items of lists, each on one line."""
    return [line.strip() for line in text.replace("\n      ", " ").splitlines() if line.strip().startswith("- ")]


def shown(directory: Path, name: str, style: str = "text") -> str:
    out = io.StringIO()
    assert show(str(directory), name, style, cards, False, 100, out, clock=clock) == 0  # noqa: FBT003
    return out.getvalue()


def retried(directory: Path, *names: str, sink: str = "", dead: bool = False) -> str:
    out = io.StringIO()
    assert retry(str(directory), Chosen(names, sink, dead), out, clock=clock) == 0
    return out.getvalue()


def dropped(directory: Path, *names: str, sink: str = "", dead: bool = False) -> str:
    out = io.StringIO()
    assert drop(str(directory), Chosen(names, sink, dead), out) == 0
    return out.getvalue()


def numbers(directory: Path, *statuses: str) -> list[int]:
    with closing(Outbox(str(directory))) as outbox:
        return [one.number for one in outbox.select(None, statuses)]


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


# -- list ------------------------------------------------------------------------------------------------------------


def test_what_waits_and_what_is_dead(running: Path) -> None:
    text = listed(running)
    assert text.startswith("3 waiting, 1 dead letter\n\n  Waiting\n")
    assert items(text) == [
        "- 1 for slack: CRITICAL Out of memory (opened), for 1 min, 1 attempt, the next one in 30 s: connection refused by 127.0.0.1:9",
        "- 5 for pager: CRITICAL Out of memory (opened), for 2 h 1 min, not tried yet",
        f"- 6 for slack: a summary of 8 incidents, the worst: CRITICAL {TITLE}, for 1 min, not tried yet",
        "- 2 for slack: CRITICAL Bad dtype (opened), dead 1 min ago after 1 attempt: HTTP 400: no such channel",
    ]


def test_what_is_done_is_listed_where_it_is_asked_for(running: Path) -> None:
    text = listed(running, done=True)
    assert items(text)[4:] == [
        "- 3 for slack: CRITICAL Still open (opened), delivered 1 min ago after 1 attempt",
        "- 4 for slack: CRITICAL Part of it (opened), 1 min ago: in the summary key-storm",
    ]


def test_what_had_to_make_room_is_known_by_its_incident(running: Path) -> None:
    with closing(Outbox(str(running))) as outbox:
        outbox.trim(NOW, age=86400.0, size=0)
    assert items(listed(running, done=True)) == [
        "- 3 for slack: incident c, delivered 1 min ago after 1 attempt",
        "- 4 for slack: incident d, 1 min ago: in the summary key-storm",
    ]
    assert "It is not kept any more" in shown(running, "c")
    assert rows(shown(running, "c", "jsonl"))[0]["message"] is None


def test_one_sinks(running: Path) -> None:
    assert [item[2] for item in items(listed(running, "pager", done=True))] == ["5"]
    assert listed(running, "pager").startswith("1 waiting, no dead letters\n")
    assert listed(running, "discord") == "Nothing waits\n"


def test_what_waits_for_a_daemon_that_does_not_run_is_said_so(state: Path) -> None:
    assert f"no `lmdiag watch` runs with {state}" in listed(state)
    dropped(state, sink="slack")
    dropped(state, sink="pager")
    assert listed(state) == "Nothing waits\n"


def test_as_json_objects(state: Path) -> None:
    found = rows(listed(state, style="jsonl"))
    assert [one["number"] for one in found] == [1, 2, 5, 6]
    assert found[1] == {
        "kind": "delivery",
        "number": 2,
        "sink": "slack",
        "key": "b-opened-1",
        "incident": "b",
        "status": "dead",
        "created_at": NOW,
        "attempts": 1,
        "next_at": NOW,
        "done_at": NOW,
        "detail": "HTTP 400: \x1b[2Jno such\x07 channel",
        "state": "opened",
        "severity": "critical",
        "title": "Bad \x1b[31mdtype",
    }
    assert "\x1b" not in listed(state, style="jsonl")
    everything = rows(listed(state, style="jsonl", done=True))
    assert [one["status"] for one in everything] == ["waiting", "dead", "delivered", "merged", "waiting", "waiting"]
    assert [one["title"] for one in everything[2:4]] == ["Still open", "Part of it"]


def test_what_another_version_wrote_is_listed_too(running: Path) -> None:
    with closing(sqlite3.connect(running / "outbox.db")) as db, db:
        db.execute("UPDATE deliveries SET body = '[\"of the future\"]' WHERE number = 1")
    assert items(listed(running))[0].startswith("- 1 for slack: what another version of lmdiag wrote of incident a, for 1 min")
    assert rows(listed(running, style="jsonl"))[0]["title"] is None
    assert "cannot be read" in shown(running, "1")


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_text_has_the_first_hundred_and_json_all(count: int, tmp_path: Path) -> None:
    with closing(Outbox(str(tmp_path))) as outbox:
        put(outbox, *(report(str(number)) for number in range(count)))
    text = listed(tmp_path)
    assert len([item for item in items(text) if " for x: " in item]) == min(count, 100)
    assert (f"- and {count - 100} more" in text) == (count > 100)
    assert [one["incident"] for one in rows(listed(tmp_path, style="jsonl"))] == [str(number) for number in range(count)]


def test_dead_letters_come_into_the_first_hundred_after_what_waits(tmp_path: Path) -> None:
    with closing(Outbox(str(tmp_path))) as outbox:
        put(outbox, *(report(str(number)) for number in range(120)))
        outbox.finish(outbox.waiting("x", 40), DEAD, NOW, "HTTP 400")
    text = listed(tmp_path)
    waiting, dead = text.split("  Dead letters\n")
    assert (len(items(waiting)), len(items(dead))) == (80, 21)
    assert "- and 20 more" in dead


def test_no_outbox_is_said_and_none_is_made(tmp_path: Path) -> None:
    directory = str(tmp_path / "state")
    told = f"there is no outbox in {directory}: nothing was ever forwarded from there\n"
    for style, expected in (("text", (told, "")), ("jsonl", ("", told))):
        out, err = io.StringIO(), io.StringIO()
        assert list_deliveries(directory, "", style, None, None, out, err) == 0
        assert (out.getvalue(), err.getvalue()) == expected
    assert list(tmp_path.iterdir()) == []


# -- reading leaves no trace -----------------------------------------------------------------------------------------


def test_reading_changes_no_file_of_a_daemon_that_is_gone(state: Path) -> None:
    before = files(state)
    listed(state)
    listed(state, style="jsonl")
    shown(state, "a")
    assert files(state) == before
    assert list(before) == ["outbox.db"]


def test_what_a_daemon_has_just_written_is_seen(state: Path) -> None:
    with closing(Outbox(str(state))) as outbox:
        put(outbox, titled("new", "Just now"), sink="slack")
        assert "Just now" in listed(state)


def test_what_a_killed_daemon_wrote_last_is_seen(state: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    killed = tmp_path_factory.mktemp("killed")
    with closing(Outbox(str(state))) as outbox:
        put(outbox, titled("new", "Just now"), sink="slack")
        for path in state.iterdir():
            (killed / path.name).write_bytes(path.read_bytes())
    assert "Just now" in listed(killed)
    assert sorted(files(killed)) == ["outbox.db", "outbox.db-shm", "outbox.db-wal"]


def test_a_copy_without_the_index_of_what_was_written_last_is_read_whole(
    state: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("copy")
    with closing(Outbox(str(state))) as outbox:
        put(outbox, titled("new", "Just now"), sink="slack")
        for end in ("", "-wal"):
            (copy / f"outbox.db{end}").write_bytes((state / f"outbox.db{end}").read_bytes())
    assert "Just now" in listed(copy)


@pytest.mark.parametrize("content", [b"no database at all" * 99, None])
def test_what_is_not_an_outbox_is_refused(content: bytes | None, tmp_path: Path) -> None:
    if content is None:
        with closing(sqlite3.connect(tmp_path / "outbox.db")) as db:
            db.execute("CREATE TABLE other (x)")
    else:
        (tmp_path / "outbox.db").write_bytes(content)
    before = files(tmp_path)
    for ask in (listed, lambda directory: shown(directory, "1")):
        with pytest.raises(UsageError, match=r"cannot read the outbox at .*outbox\.db: .*--state"):
            ask(tmp_path)
    assert files(tmp_path) == before


def test_a_damaged_outbox_is_left_to_the_daemon(tmp_path: Path) -> None:
    (tmp_path / "outbox.db").write_bytes(b"no database at all" * 99)
    before = files(tmp_path)
    for change in (retried, dropped):
        with pytest.raises(StateError, match=r"outbox\.db"):
            change(tmp_path, dead=True)
    assert files(tmp_path) == before


# -- show ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["2", "b-opened-1", "b"])
def test_a_delivery_is_shown_with_its_whole_report(name: str, state: Path) -> None:
    text = shown(state, name)
    assert text.startswith("DEAD  2 for slack\n")
    for said in ("CRITICAL Bad dtype (opened)", "2025-12-03T00:00:00.000Z, dead 1 min ago after 1 attempt", "HTTP 400: no such channel",
                 "b-opened-1", "node7", "Meaning", "What to change", "Using MLA backend", "ERROR line 11"):  # fmt: skip
        assert said in text
    assert "\x1b" not in text


def test_all_deliveries_of_an_incident_are_shown_and_its_report_once(state: Path) -> None:
    text = shown(state, "a")
    assert [line for line in text.splitlines() if line.startswith("WAITING")] == ["WAITING  1 for slack", "WAITING  5 for pager"]
    assert text.count("What to change") == 1


def test_of_several_reports_the_newest_is_shown_as_it_was_told_and_whole(state: Path) -> None:
    later = report("a", "resolved")
    with closing(Outbox(str(state))) as outbox:
        put(outbox, later._replace(at=NOW + 30, incident=later.incident._replace(title="Out of memory, at last")), sink="slack")
    text = shown(state, "a")
    _, _, told = text.partition("\nRESOLVED")
    assert "Out of memory, at last" in told
    assert "What to change" in told
    assert text.count("\nRESOLVED") == 1


def test_a_report_without_a_card_that_can_be_had_is_shown_too(state: Path) -> None:
    with closing(Outbox(str(state))) as outbox:
        put(outbox, titled("e", "x")._replace(incident=incident("e")._replace(card="gone")), sink="slack")
    assert "ERROR line 11" in shown(state, "e")


def test_a_summary_is_shown_with_its_members(state: Path) -> None:
    text = shown(state, "key-storm")
    assert [f"Failure {number}" in text for number in range(6)] == [True] * 5 + [False]
    assert "- and 3 more" in text


def test_what_was_delivered_is_shown_whole(state: Path) -> None:
    """A message says: `The whole: lmdiag outbox show KEY`."""
    assert "CRITICAL Still open (opened)" in shown(state, "c-opened-1")
    assert "What to change" in shown(state, "3")


def test_the_message_as_json(state: Path) -> None:
    first, second = rows(shown(state, "a", "jsonl"))
    assert (first["number"], second["number"]) == (1, 5)
    sent = first["message"]
    assert isinstance(sent, dict)
    assert {key: sent[key] for key in ("at", "since", "instance", "alert")} == {"at": NOW, "since": NOW - 60, "instance": "node7", "alert": "alert-a"}
    assert (sent["data"]["kind"], sent["data"]["title"]) == ("incident", "Out of memory")
    (storm,) = rows(shown(state, "6", "jsonl"))
    assert isinstance(storm["message"], dict)
    assert (storm["message"]["data"]["kind"], storm["message"]["data"]["count"]) == ("summary_of_incidents", 8)


@pytest.mark.parametrize("ask", [shown, retried, dropped])
def test_a_name_that_is_not_found_is_an_error(ask: Callable[[Path, str], str], state: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no 'zz' in the outbox in"):
        ask(state, "zz")
    with pytest.raises(UsageError, match="there is no outbox in"):
        ask(tmp_path / "other", "zz")
    assert not (tmp_path / "other").exists()


# -- retry and drop --------------------------------------------------------------------------------------------------


def test_a_dead_letter_waits_again(state: Path) -> None:
    said = retried(state, dead=True)
    assert said.splitlines()[0] == "to be sent again: 1 message"
    assert said.splitlines()[1].startswith(f"no `lmdiag watch` runs with {state}")
    assert numbers(state, WAITING) == [1, 2, 5, 6]
    with closing(Outbox(str(state))) as outbox:
        assert {(one.created_at, one.next_at, one.attempts) for one in outbox.find("2")} == {(clock(), clock(), 0)}


def test_a_daemon_that_runs_takes_it_up_by_itself(running: Path) -> None:
    assert retried(running, "2") == "to be sent again: 1 message\n"


def test_what_waits_for_its_next_attempt_is_tried_at_once(running: Path) -> None:
    assert retried(running, sink="slack") == "to be sent again: 3 messages\n"
    with closing(Outbox(str(running))) as outbox:
        assert {one.next_at for one in outbox.waiting("slack", 9)} == {clock()}


def test_what_later_news_has_overtaken_is_left_out_and_said_so(running: Path) -> None:
    with closing(Outbox(str(running))) as outbox:
        put(outbox, titled("b", "Bad dtype", "resolved"), sink="slack")
        outbox.finish([one for one in outbox.find("b") if one.status == WAITING], DELIVERED, NOW)
    left = "1 left out: a later report of its incident was delivered"
    assert retried(running, "a", "2") == f"to be sent again: 2 messages; {left}\n"
    assert retried(running, dead=True) == f"to be sent again: 0 messages; {left}\n"
    assert numbers(running, DEAD) == [2]


def test_names_can_be_mixed_and_count_once(running: Path) -> None:
    assert retried(running, "a", "1", "b-opened-1") == "to be sent again: 3 messages\n"


def test_dropping(state: Path) -> None:
    assert dropped(state, "b") == "dropped: 1 message\n"
    assert dropped(state, sink="pager") == "dropped: 1 message\n"
    assert numbers(state, *STATUSES) == [1, 3, 4, 6]
    with pytest.raises(UsageError):
        dropped(state, "b")


def test_dropping_the_dead_leaves_what_waits(state: Path) -> None:
    assert dropped(state, dead=True) == "dropped: 1 message\n"
    assert dropped(state, dead=True) == "dropped: 0 messages\n"
    assert numbers(state, *STATUSES) == [1, 3, 4, 5, 6]


@pytest.mark.parametrize("ask", [retried, dropped])
def test_what_is_done_is_neither_sent_again_nor_dropped(ask: Callable[[Path, str], str], state: Path) -> None:
    assert ask(state, "c").splitlines()[0].endswith(": 0 messages")
    assert numbers(state, DELIVERED) == [3]


@pytest.mark.parametrize("ask", [retried, dropped])
def test_one_wrong_name_and_nothing_is_done(ask: Callable[[Path, str, str], str], state: Path) -> None:
    with pytest.raises(UsageError, match="'zz'"):
        ask(state, "b", "zz")
    assert (numbers(state, DEAD), numbers(state, WAITING)) == ([2], [1, 5, 6])


@pytest.mark.parametrize("chosen", [Chosen(), Chosen(("1",), dead=True), Chosen(("1",), "slack"), Chosen((), "slack", dead=True)])
def test_there_is_one_way_to_choose(chosen: Chosen, state: Path) -> None:
    for change in (retry, drop):
        with pytest.raises(UsageError, match=r"say in one way what is .*: NAME.*--sink NAME or --dead"):
            change(str(state), chosen, io.StringIO())
    assert numbers(state, *STATUSES) == [1, 2, 3, 4, 5, 6]


def test_without_an_outbox_there_is_nothing_to_do(tmp_path: Path) -> None:
    for change in (retried, dropped):
        assert change(tmp_path / "state", dead=True).startswith("there is no outbox in ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave files that the daemon's user may not open")
def test_root_leaves_no_file_of_its_own(state: Path) -> None:
    os.chown(state / "outbox.db", 12345, 12346)
    seen: list[tuple[str, int, int]] = []

    def look() -> float:
        seen.extend((path.name, path.stat().st_uid, path.stat().st_gid) for path in sorted(state.iterdir()))
        return NOW

    assert retry(str(state), Chosen(dead=True), io.StringIO(), clock=look) == 0
    assert seen == [(name, 12345, 12346) for name in ("outbox.db", "outbox.db-shm", "outbox.db-wal")]
    assert list(files(state)) == ["outbox.db"]


# -- with a forwarder ------------------------------------------------------------------------------------------------


def test_a_retried_dead_letter_is_delivered_and_no_secret_is_shown(tmp_path: Path) -> None:
    token, hook = CREDENTIALS[0], CREDENTIALS[4]
    state = tmp_path / "state"
    (tmp_path / "token").write_text(token)
    answer = Answer(400, body=f"no {token} at /{hook}".encode())
    with Receiver([answer], own=(token, hook)) as receiver:
        (tmp_path / "url").write_text(f"{receiver.url}/{hook}")
        sink = SinkConfig(name="x", type="webhook", url_file=str(tmp_path / "url"), token_file=str(tmp_path / "token"))
        works = Forwarder(WatchConfig(state=str(state), sinks=(sink,), instance="node7"), cards)
        try:
            works.put([Told(message().incident, 1)])
            works.start()
            works.drain(30)
            assert numbers(state, DEAD) == [1]
            printed = listed(state) + shown(state, "1") + shown(state, "1", "jsonl")
            assert "HTTP 400" in printed
            printed += retried(state, dead=True)
            for rounds in works._rounds.values():
                rounds.wake()
            receiver.wait_for(2)
            works.drain(30)
        finally:
            works.close(30)
        assert numbers(state, DELIVERED) == [1]
        assert receiver.taken[0].headers["webhook-id"] == receiver.taken[1].headers["webhook-id"]
        assert_clean(printed, "what was printed")
