"""A real daemon forwards a real failure to a receiver of each kind; nothing that is secret goes anywhere that it is not meant for."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from planted import CREDENTIALS, LOG_SECRETS, assert_clean
from receiver import Answer, Receiver, Taken

from lmdiag.watch.status import read_status

BEARER, PASSWORD, SIGNING_KEY, ROUTING_KEY, HOOK = CREDENTIALS
HF_TOKEN, OPENAI_KEY, API_KEY, PROMPT = LOG_SECRETS
LOG = (Path(__file__).parent / "logs" / "mla-serde-start-failed.log").read_text()
ARGUMENTS = "non-default args: {"
CAUSE = "ValueError: MLA only works with naive serde mode.."
PLANTED = f"'api_key': ['{API_KEY}'], 'hf_token': '{HF_TOKEN}', "
FOLLOWING = f"RuntimeError: cannot fetch https://user:{OPENAI_KEY}@hub.example/x?token={HF_TOKEN} for prompt: '{PROMPT} a fever'"
OWN: dict[str, tuple[str, ...]] = {
    "webhook": (BEARER, SIGNING_KEY),
    "alertmanager": (PASSWORD,),
    "alertmanager-webhook": (),
    "slack": (HOOK,),
    "pagerduty": (ROUTING_KEY,),
    "teams": (HOOK,),
    "discord": (HOOK,),
    "apprise": (),
}
"""What the receiver of each type is to be sent."""
SETTINGS = {
    "webhook": 'url = "{url}"\ntoken-file = "bearer"\nsecret-file = "signing-key"',
    "alertmanager": 'url = "{url}"\nusername = "lmdiag"\npassword-file = "password"',
    "alertmanager-webhook": 'url = "{url}"',
    "pagerduty": 'url = "{url}"\nrouting-key-file = "routing-key"',
    "file": 'path = "{directory}/incidents.jsonl"',
    "exec": 'command = ["{python}", "-c", "import shutil, sys; shutil.copyfileobj(sys.stdin, open(\'{directory}/exec.json\', \'w\'))"]',
}


@pytest.fixture
def receivers() -> Iterator[Mapping[str, Receiver]]:
    """A receiver for each type that posts; they answer with what they were sent, as a careless one does."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(Receiver(default=Answer(202), own=own)) for name, own in OWN.items()}


def config(directory: Path, receivers: Mapping[str, Receiver]) -> str:
    """Write the credentials and the configuration."""
    names = {"bearer": BEARER, "password": PASSWORD, "signing-key": SIGNING_KEY, "routing-key": ROUTING_KEY}
    for name, text in names.items():
        (directory / name).write_text(text)
    (directory / "apprise-url").write_text(f"json://127.0.0.1:{receivers['apprise'].port}/")
    sections = []
    for name in (*OWN, "file", "exec"):
        url = receivers[name].url if name in receivers else ""
        if name in ("slack", "teams", "discord"):
            (directory / f"{name}-url").write_text(f"{url}/{HOOK}")
        settings = SETTINGS.get(name, f'url-file = "{name}-url"')
        text = settings.format(url=url, directory=directory, python=sys.executable)
        sections.append(f'[sinks.{name}]\ntype = "{name}"\n{text}\n')
    return "\n".join(sections)


def watch(directory: Path) -> str:
    """Run the daemon once; return all that it printed."""
    command = [sys.executable, "-m", "lmdiag", "watch", "server.log", "--once", "--from", "start", "--state", "state"]
    command += ["--config", "config.toml", "--listen", "", "--format", "jsonl"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout + done.stderr


def test_every_kind_of_receiver_gets_the_advice_and_no_secret(tmp_path: Path, receivers: Mapping[str, Receiver]) -> None:
    assert ARGUMENTS in LOG
    assert CAUSE in LOG
    log = LOG.replace(ARGUMENTS, ARGUMENTS + PLANTED).replace(CAUSE, f"{CAUSE} token={HF_TOKEN} prompt: '{PROMPT} x'", 1)
    (tmp_path / "server.log").write_text(f"{FOLLOWING}\n{log}")
    (tmp_path / "config.toml").write_text(config(tmp_path, receivers))
    printed = watch(tmp_path)
    assert_clean(printed, "what was printed")
    status = read_status(str(tmp_path / "state"), running=False)
    assert status is not None
    delivered = {sink.name: dict(sink.results)["delivered"] for sink in status.sinks}
    once = receivers.keys() - {"alertmanager"}  # which is sent what is active again
    assert {name: delivered[name] for name in once} == {name: len(receivers[name].taken) for name in once}
    for name, receiver in receivers.items():
        assert any("remote_serde" in taken.body.decode() for taken in receiver.taken), f"{name}: {printed}"
        for own in set(OWN[name]) - {SIGNING_KEY}:
            assert all(has_credential(taken, own) for taken in receiver.taken), f"{name} did not get its credential"
    for name in ("incidents.jsonl", "exec.json"):
        text = (tmp_path / name).read_text()
        assert "remote_serde" in text
        assert_clean(text, name)
    for file in (tmp_path / "state").glob("outbox*"):
        assert_clean(file.read_bytes(), file.name)
    state = sqlite3.connect(tmp_path / "state" / "state.db")
    for table in ("meta", "incidents", "reports"):  # `sources` has the log's unfinished tracebacks, as they stand there
        assert_clean(repr(state.execute(f"SELECT * FROM {table}").fetchall()), table)  # noqa: S608


def has_credential(taken: Taken, secret: str) -> bool:
    """Whether a credential is where a service looks for it: in the path, the body or the head."""
    login = b64encode(f"lmdiag:{secret}".encode()).decode()
    authorization = taken.headers.get("authorization", "")
    return secret in taken.path or secret in taken.body.decode() or authorization in (f"Bearer {secret}", f"Basic {login}")
