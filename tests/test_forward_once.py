"""`lmdiag scan --forward`: from cron and CI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from planted import CREDENTIALS, LOG_SECRETS, assert_clean
from receiver import Answer, Receiver

from lmdiag.forward.outbox import DEAD, STATUSES, WAITING, Outbox
from lmdiag.forward.rounds import Turn

LOG = (Path(__file__).parent / "logs" / "mla-serde-start-failed.log").read_text()


class Node:
    """A node on which cron scans a log."""

    def __init__(self, directory: Path, url: str, *lines: str) -> None:
        self.log = directory / "server.log"
        self.state = directory / "state"
        self.config = directory / "config.toml"
        self.log.write_text(f"INFO 12-01 02:51:00 [x.py:1] hf_token={LOG_SECRETS[0]} prompt: {LOG_SECRETS[3]!r}\n{LOG}")
        (directory / "token").write_text(CREDENTIALS[0])
        text = f'state = "{self.state}"\n[sinks.x]\ntype = "webhook"\nurl = "{url}"\ntoken-file = "{directory}/token"\ntimeout = "5s"\n'
        self.config.write_text("\n".join((text, *lines)))

    def scan(self, *options: str) -> tuple[int, str]:
        """Scan and forward; return the exit code and what was said beside the report."""
        command = [sys.executable, "-m", "lmdiag", "scan", str(self.log), "--forward", "--config", str(self.config), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert_clean(done.stdout + done.stderr, "what was printed")
        return done.returncode, done.stderr

    def outbox(self, *statuses: str) -> list[str]:
        """The cards of what is in the outbox."""
        return [str(message.incident.card) for one in Outbox(str(self.state)).select(None, statuses) if (message := one.message)]


@pytest.fixture
def receiver() -> Receiver:
    """A receiver that wants the token."""
    return Receiver(own=CREDENTIALS)


def test_what_was_found_is_sent_once_however_often_it_is_scanned(tmp_path: Path, receiver: Receiver) -> None:
    with receiver:
        node = Node(tmp_path, receiver.url)
        assert node.scan() == (1, "lmdiag: sink x: 1 message delivered\n")
        assert node.scan() == (1, "lmdiag: sink x: 0 messages delivered\n")
        assert [one.json["data"]["card"] for one in receiver.taken] == ["lmcache-mla-naive-serde"]


def test_what_is_not_taken_waits_for_the_next_time(tmp_path: Path, receiver: Receiver) -> None:
    with receiver:
        receiver.default = Answer(503, (("Retry-After", "0"),))
        node = Node(tmp_path, receiver.url)
        code, said = node.scan("--exit-zero")
        assert (code, node.outbox(WAITING)) == (0, ["lmcache-mla-naive-serde"])
        assert "1 waiting for lmdiag watch or the next --forward: HTTP 503" in said
        receiver.default = Answer(204)
        receiver.wait_for(1)
        while node.outbox(WAITING):
            node.scan()
        assert len({one.headers["webhook-id"] for one in receiver.taken}) == 1


def test_what_is_refused_is_an_error(tmp_path: Path, receiver: Receiver) -> None:
    with receiver:
        receiver.default = Answer(403)
        node = Node(tmp_path, receiver.url)
        code, said = node.scan("--exit-zero")
        assert (code, node.outbox(DEAD)) == (2, ["lmcache-mla-naive-serde"])
        assert "1 refused (lmdiag outbox list): HTTP 403" in said


def test_beside_a_daemon_it_only_puts_it_there(tmp_path: Path, receiver: Receiver) -> None:
    with receiver:
        node = Node(tmp_path, receiver.url)
        node.state.mkdir()
        turn = Turn(str(node.state))
        assert turn.mine()
        said = f"lmdiag: 1 message handed to the lmdiag that delivers from {node.state}, which has not sent all of it yet\n"
        assert node.scan() == (1, said)
        assert node.outbox(*STATUSES) == ["lmcache-mla-naive-serde"]
        assert receiver.taken == []
        turn.leave()


def test_without_a_sink_it_says_how_to_name_one(tmp_path: Path) -> None:
    node = Node(tmp_path, "http://127.0.0.1:9")
    node.config.write_text("")
    code, said = node.scan()
    assert code == 2
    assert "[sinks.NAME]" in said
