"""The daemon is killed with -9 at random moments while it forwards what it finds to a receiver that fails in every way."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import defaultdict
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from failing import Log, Writer, failing_start, message
from planted import CREDENTIALS, LOG_SECRETS, assert_clean
from receiver import Answer, Behaviour, Receiver, Taken, half, hang, reset
from standardwebhooks import Webhook
from watching import Watch

from lmdiag.forward.outbox import STATUSES, WAITING, Outbox

SEED = int(os.environ.get("LMDIAG_SEED") or random.SystemRandom().randrange(1 << 32))
"""Of all randomness here; a failing test names it."""
TOKEN, SIGNING_KEY = CREDENTIALS[0], CREDENTIALS[2]
SECRETS = f"INFO 12-01 02:51:00 [x.py:1] hf_token={LOG_SECRETS[0]}, api_key={LOG_SECRETS[2]}, prompt: {LOG_SECRETS[3]!r}\n"
CONFIG = """
[sinks.flaky]
type = "webhook"
url = "{flaky}"
secret-file = "{directory}/signing-key"
token-file = "{directory}/token"
timeout = "500ms"

[sinks.steady]
type = "webhook"
url = "{steady}"

[sinks.nobody]
type = "webhook"
url = "http://127.0.0.1:9"
"""


class Flaky(Receiver):
    """Fails at random, in every way."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(own=CREDENTIALS)
        self.chance = chance
        self.well = False

    def take(self, request: Taken) -> Behaviour:
        """Note the request, and maybe fail."""
        super().take(request)
        failures: tuple[Callable[[], Behaviour], ...] = (
            lambda: hang,
            lambda: reset,
            lambda: half,
            lambda: Answer(500, body=TOKEN.encode()),
            lambda: Answer(429, (("Retry-After", "1"),)),
            lambda: Answer(503, (("Retry-After", formatdate(usegmt=True)),)),
            lambda: Answer(302, (("Location", "http://127.0.0.1:9/elsewhere"),)),
        )
        failing = not self.well and self.chance.random() < 0.35
        return self.chance.choice(failures)() if failing else Answer(204)


@pytest.mark.parametrize("kills", [8, pytest.param(300, marks=pytest.mark.system)])
def test_killed_at_random_moments_it_delivers_every_incident_in_order_under_one_key(tmp_path: Path, kills: int) -> None:
    chance = random.Random(SEED)  # noqa: S311
    path = tmp_path / "logs" / "server.log"
    path.parent.mkdir()
    log = Log(path)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "signing-key").write_text(SIGNING_KEY)
    # fewer rotations than are kept, for a daemon that is always killed too early reads nothing for a while
    writer = Writer(log, random.Random(chance.random()), pause=2.0, rotations=0.01)  # noqa: S311
    with Flaky(random.Random(chance.random())) as flaky, Receiver() as steady:  # noqa: S311
        config = tmp_path / "config.toml"
        config.write_text(CONFIG.format(flaky=flaky.url, steady=steady.url, directory=tmp_path))
        watch = Watch([path], tmp_path, "--from", "start", "--config", str(config))
        with watch:
            log.write(SECRETS.encode() + failing_start(0))
            watch.until(watch.incidents, "the first incident")
            with writer:
                for _ in range(kills):
                    watch.read_for(chance.uniform(0, 1.5))
                    watch.stop(signal.SIGKILL)
                    watch.start()
            flaky.well = True
            expected = {message(number) for number in range(writer.written)}
            for receiver in (flaky, steady):
                watch.until(lambda: expected <= opened(receiver), f"all at both receivers, seed {SEED}", 90)  # noqa: B023
            outbox = Outbox(str(watch.state))
            watch.until(lambda: not outbox.waiting("flaky", 1) and not outbox.waiting("steady", 1), "an empty outbox")
        for name, receiver in (("flaky", flaky), ("steady", steady)):
            assert_in_order(outbox, name, receiver)
        assert len(outbox.select("nobody", [WAITING])) >= writer.written
        for taken in flaky.taken:
            Webhook(SIGNING_KEY).verify(taken.body, dict(taken.headers))
        everything = [*watch.state.iterdir(), watch.errors]
        for file in everything:
            assert_clean(file.read_bytes(), file.name)
        assert_clean(json.dumps([one.data for one in watch.reports]), "what was printed")


def opened(receiver: Receiver) -> set[str]:
    """The messages of the causes that a receiver was told of."""
    return {one.json["data"]["root"]["message"] for one in list(receiver.taken) if one.json["data"]["root"]}


def assert_in_order(outbox: Outbox, name: str, receiver: Receiver) -> None:
    """Each report came under one key, in the order of the outbox, and nothing came that is not there."""
    numbers = {one.key: one.number for one in outbox.select(name, STATUSES)}
    arrived = list(dict.fromkeys(one.headers["webhook-id"] for one in receiver.taken))
    assert [numbers[key] for key in arrived] == sorted(numbers.values()), f"{name}, seed {SEED}"
    bodies: dict[str, set[bytes]] = defaultdict(set)
    keys: dict[Any, set[str]] = defaultdict(set)
    for taken in receiver.taken:
        data = taken.json["data"]
        bodies[taken.headers["webhook-id"]].add(taken.body)
        keys[data["id"], data["state"], data["count"]].add(taken.headers["webhook-id"])
    assert {len(found) for found in bodies.values()} == {1}, f"{name}, seed {SEED}"
    assert {report: found for report, found in keys.items() if len(found) > 1} == {}, f"{name}, seed {SEED}"
