"""The sink `alertmanager` and the shipped routing, with a real Alertmanager between the nodes and the people."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml  # type: ignore[import-untyped]
from messages import message
from receiver import Answer, Receiver, reset
from report_samples import CARD, MATCHED, UNMATCHED, with_message

from lmdiag.config import SinkConfig
from lmdiag.forward.alerts import succession
from lmdiag.forward.message import DELIVERED, Message
from lmdiag.forward.sink import open_sink
from lmdiag.model import Incident

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus-alertmanager") is None or shutil.which("amtool") is None,
    reason="Alertmanager is not installed (apt install prometheus-alertmanager)",
)
EXAMPLE = Path(__file__).parent.parent / "docs" / "prometheus" / "alertmanager.yml"
ADVICE = "Set `use_layerwise` to `false`."


class Fleet(NamedTuple):
    """An Alertmanager with the shipped routes, and who is behind it."""

    url: str
    pager: Receiver
    chat: Receiver

    def send(self, *messages: Message, hold: float = 3600.0) -> None:
        """Post as a node does."""
        sink = open_sink(SinkConfig("fleet", "alertmanager", url=self.url, hold=hold))
        outcome = sink.send(messages, time.time())
        assert outcome.result == DELIVERED, outcome

    def alerts(self, *matchers: str) -> list[Any]:
        """Return what amtool shows to be active."""
        command = ["amtool", "alert", "query", f"--alertmanager.url={self.url}", "--output=json", *matchers]
        alerts: list[Any] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)
        return alerts

    def severities(self) -> list[str]:
        """Return those of the active alerts."""
        return sorted(alert["labels"]["severity"] for alert in self.alerts())

    def pass_time(self) -> None:
        """Let each group be looked at again: groups of marks come and go meanwhile, which takes longer than that."""
        for _ in range(2):
            mark = report("mark", incident=change(UNMATCHED, fingerprint=f"mark-{time.time_ns()}"))
            for state, status in (("opened", "firing"), ("resolved", "resolved")):
                self.send(later(mark._replace(since=mark.since - 60), state))  # so old that it is notified at once
                until(partial(self._has_told, mark.incident.fingerprint, status))

    def _has_told(self, fingerprint: str, status: str) -> bool:
        wanted = (fingerprint, status)
        return wanted in [(one["groupLabels"].get("fingerprint"), one["status"]) for one in told(self.chat)]


def change(incident: Incident = MATCHED, **changes: Any) -> Incident:
    return incident._replace(**changes)


def report(node: str, state: str = "opened", incident: Incident = MATCHED) -> Message:
    """A report of an incident that has just begun on a node."""
    now = time.time()
    base = message(state, lambda _: incident._replace(state=state))
    return base._replace(instance=node, alert=f"{node}-{incident.fingerprint}", at=now, since=now)


def later(earlier: Message, state: str, **changes: Any) -> Message:
    """A later report of the same incident."""
    return earlier._replace(at=time.time(), incident=earlier.incident._replace(state=state, **changes))


def told(receiver: Receiver, *, marks: bool = True) -> list[Any]:
    """Return the notifications that a receiver got."""
    return [one.json for one in list(receiver.taken) if marks or nodes(one.json) != ["mark"]]


def standings(notification: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the severity and the status of each alert of a notification."""
    return sorted((alert["labels"]["severity"], alert["status"]) for alert in notification["alerts"])


def nodes(notification: Mapping[str, Any]) -> list[str]:
    """Return the nodes of a notification's alerts."""
    return sorted(alert["labels"]["instance"] for alert in notification["alerts"])


def until(holds: Callable[[], object], seconds: float = 30) -> None:
    """Wait for something in another process."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"Alertmanager did not get there in {seconds} s"
        time.sleep(0.05)


def example(receivers: Mapping[str, Mapping[str, Any]], wait: str = "500ms") -> dict[str, Any]:
    """Return the shipped configuration with other receivers, and shorter times; `wait`: for others of a new group."""
    config: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    assert {receiver["name"] for receiver in config["receivers"]} == set(receivers)
    config["receivers"] = [{"name": name, **receiver} for name, receiver in receivers.items()]
    for route in [config["route"], *config["route"]["routes"]]:
        route |= {"group_wait": wait, "group_interval": "300ms"}
    return config


def webhook(receiver: Receiver) -> dict[str, Any]:
    return {"webhook_configs": [{"url": receiver.url, "send_resolved": True}]}


def start(stack: ExitStack, config: Mapping[str, Any], directory: Path) -> str:
    """Start an Alertmanager on loopback; return its URL."""
    (directory / "alertmanager.yml").write_text(yaml.safe_dump(dict(config)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = stack.enter_context((directory / "log").open("wb"))
    process = subprocess.Popen(
        ["prometheus-alertmanager", f"--config.file={directory}/alertmanager.yml", f"--storage.path={directory}/data",
         f"--web.listen-address={address}", "--cluster.listen-address="],
        stdout=log, stderr=log,
    )  # fmt: skip
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
    until(lambda: ready(address))
    return f"http://{address}"


def ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        pager, chat = (stack.enter_context(Receiver()) for _ in range(2))
        config = example({"pager": webhook(pager), "chat": webhook(chat)}, getattr(request, "param", "500ms"))
        yield Fleet(start(stack, config, tmp_path), pager, chat)


@pytest.mark.parametrize("fleet", ["3s"], indirect=True)
def test_one_failure_of_three_nodes_is_one_notification_until_all_of_them_are_well(fleet: Fleet) -> None:
    names = ["node7", "node8", "node9"]
    reports = [report(name) for name in names]
    for one in reports:  # each node posts by itself
        fleet.send(one)
    for receiver in (fleet.pager, fleet.chat):
        receiver.wait_for(1)
        (opened,) = told(receiver)
        assert (opened["status"], nodes(opened)) == ("firing", names)
        assert opened["groupLabels"] == {"alertname": "LmdiagIncident", "card": CARD.id}
        assert opened["commonAnnotations"]["advice"].startswith(ADVICE)
        assert all(one["labels"]["instance"] in one["annotations"]["summary"] for one in opened["alerts"])
    assert nodes({"alerts": fleet.alerts(f"card={CARD.id}")}) == names
    fleet.send(*(later(one, "resolved") for one in reports))
    for receiver in (fleet.pager, fleet.chat):
        receiver.wait_for(2)
        _, over = told(receiver)
        assert (over["status"], nodes(over)) == ("resolved", names)
    assert fleet.alerts() == []


def test_a_failure_is_told_from_others_by_its_card_or_without_one_by_its_fingerprint(fleet: Fleet) -> None:
    other = change(card="another", fingerprint="f2")
    unknown, strange = (change(UNMATCHED, fingerprint=name) for name in ("f3", "f4"))
    fleet.send(*(report(node, incident=one) for node in ("a", "b") for one in (MATCHED, other, unknown)))
    fleet.send(report("a", incident=strange))
    fleet.chat.wait_for(4)
    groups = {
        (one["groupLabels"]["card"], one["groupLabels"].get("fingerprint")): nodes(one) for one in told(fleet.chat)
    }
    assert groups == {
        (CARD.id, None): ["a", "b"],
        ("another", None): ["a", "b"],
        ("none", "f3"): ["a", "b"],
        ("none", "f4"): ["a"],
    }
    fleet.pass_time()
    assert len(told(fleet.chat, marks=False)) == 4
    assert {one["groupLabels"]["card"] for one in told(fleet.pager)} == {CARD.id, "another"}  # the others are errors


def test_what_is_sent_again_is_not_told_again(fleet: Fleet) -> None:
    opened = report("node7")
    fleet.send(opened)
    fleet.chat.wait_for(1)
    for state in ("opened", "repeated", "repeated"):
        fleet.send(later(opened, state))
        fleet.pass_time()
    assert [one["status"] for one in told(fleet.chat, marks=False)] == ["firing"]
    assert len(fleet.alerts()) == 1


@pytest.mark.parametrize("down", [(reset, reset), (Answer(503), Answer(500), Answer(429))])
def test_a_receiver_that_is_down_gets_it_afterwards(fleet: Fleet, down: Sequence[Any]) -> None:
    fleet.chat.answers += down
    fleet.send(report("node7", incident=UNMATCHED))
    taken = fleet.chat.wait_for(len(down) + 1)
    assert nodes(taken[-1].json) == ["node7"]
    fleet.pass_time()
    assert len(told(fleet.chat, marks=False)) == len(down) + 1  # once it was taken, that was all


def test_an_alert_lasts_while_it_is_sent_again_and_then_for_as_long_as_it_is_held(fleet: Fleet) -> None:
    hold, opened = 3.0, report("node7")
    fleet.send(opened, hold=hold)
    fleet.chat.wait_for(1)
    while time.time() < opened.since + hold + 0.5:
        fleet.send(later(opened, "repeated"), hold=hold)
        assert len(fleet.alerts()) == len(fleet.chat.taken) == 1
    fleet.chat.wait_for(2)
    assert [one["status"] for one in told(fleet.chat)] == ["firing", "resolved"]


def test_an_incident_that_becomes_worse_leaves_no_alert_behind(fleet: Fleet) -> None:
    opened = report("node7", incident=change(severity="error"))
    fleet.send(opened)
    fleet.chat.wait_for(1)
    assert fleet.severities() == ["error"]
    worse = later(opened, "repeated", severity="critical")
    fleet.send(*succession(worse, opened))
    fleet.pager.wait_for(1)
    fleet.chat.wait_for(2)
    assert fleet.severities() == ["critical"]
    fleet.send(*succession(later(opened, "resolved", severity="info"), worse))
    fleet.pager.wait_for(2)
    fleet.chat.wait_for(3)
    fleet.pass_time()
    assert fleet.severities() == []
    assert [(one["status"], len(one["alerts"])) for one in told(fleet.pager)] == [("firing", 1), ("resolved", 1)]
    assert [standings(one) for one in told(fleet.chat, marks=False)] == [
        [("error", "firing")],
        [("critical", "firing"), ("error", "resolved")],
        [("critical", "resolved")],
    ]


def test_the_end_of_an_alert_that_was_never_known_is_told_nobody(fleet: Fleet) -> None:
    fleet.send(report("node7", "resolved"))
    fleet.pass_time()
    assert told(fleet.chat, marks=False) == told(fleet.pager) == []


def test_nothing_of_a_log_is_refused(fleet: Fleet) -> None:
    texts = [
        "\x00\x07\x1b[31m",
        "\ud800\udfff",
        "\u2028\u202e\x85",
        "{{ .Alerts }}",
        "</script>&amp;",
        '"\\\n\r\t',
        "é" * 5000,
        " ",
        "",
    ]
    urls = ["https://a/%zz", "http://a b/", "::", "https://a/\x00", "https://[::1/", "javascript:x", "https://a/\ud800"]
    site = MATCHED.raised_at
    assert site is not None
    hostile = [
        report(text or "node", incident=change(with_message(text), fingerprint=f"t{index}"))
        for index, text in enumerate(texts)
    ]
    hostile += [
        report("node", incident=change(fingerprint=f"u{index}", raised_at=site._replace(url=url)))._replace(
            card=CARD._replace(references=(url,))
        )
        for index, url in enumerate(urls)
    ]
    hostile.append(report("node", incident=change(with_message("x\x00\ud800" * 700_000), fingerprint="big")))
    labels = (("cluster", "eu-1"),)
    sink = open_sink(SinkConfig("fleet", "alertmanager", url=fleet.url + "/", labels=labels))
    assert sink.send(hostile, time.time()).result == DELIVERED
    alerts = fleet.alerts()
    assert {alert["labels"]["fingerprint"] for alert in alerts} == {one.incident.fingerprint for one in hostile}
    assert {alert["labels"]["cluster"] for alert in alerts} == {"eu-1"}


def test_an_effect_is_not_told_where_its_cause_is(fleet: Fleet) -> None:
    def add(*labels: str) -> None:
        command = ["amtool", "alert", "add", f"--alertmanager.url={fleet.url}", *labels]
        subprocess.run(command, check=True, capture_output=True, timeout=30)

    add("alertname=LmdiagDown", "instance=node7", "severity=error")
    fleet.chat.wait_for(1)
    add("alertname=LmdiagSourceLagging", "instance=node7", "severity=warning")
    add("alertname=LmdiagSourceLagging", "instance=node8", "severity=warning")
    fleet.send(report("node7", incident=UNMATCHED))
    fleet.chat.wait_for(3)
    fleet.pass_time()
    notified = {(one["groupLabels"]["alertname"], *nodes(one)) for one in told(fleet.chat, marks=False)}
    assert notified == {("LmdiagDown", "node7"), ("LmdiagSourceLagging", "node8"), ("LmdiagIncident", "node7")}


def test_the_texts_of_the_example_say_what_to_do_and_call_nobody(tmp_path: Path) -> None:
    shipped = {receiver["name"]: receiver for receiver in yaml.safe_load(EXAMPLE.read_text())["receivers"]}
    slack, pagerduty = shipped["chat"]["slack_configs"][0], shipped["pager"]["pagerduty_configs"][0]
    del slack["api_url_file"], pagerduty["routing_key_file"]
    with ExitStack() as stack:
        pager, chat = stack.enter_context(Receiver(default=Answer(202))), stack.enter_context(Receiver())
        slack["api_url"] = chat.url
        pagerduty |= {"routing_key": "key", "url": pager.url}
        url = start(
            stack, example({"pager": {"pagerduty_configs": [pagerduty]}, "chat": {"slack_configs": [slack]}}), tmp_path
        )
        fleet = Fleet(url, pager, chat)
        fleet.send(report("node7"), report("node8"))
        shown = json.dumps(chat.wait_for(1)[0].json)
        event = pager.wait_for(1)[0].json
        fleet.send(report("node7", incident=change(with_message("<!channel> <https://evil|x> &"), fingerprint="f9")))
        quoted = json.dumps(chat.wait_for(2)[1].json["attachments"][0]["text"])
    assert f"FIRING: {CARD.id} (2 firing, 0 resolved)" in shown
    assert ADVICE in shown
    assert (event["event_action"], event["payload"]["severity"]) == ("trigger", "critical")
    assert event["payload"]["summary"].endswith("(2 alerts)")
    assert event["payload"]["custom_details"]["advice"].startswith(ADVICE)
    assert "&lt;!channel>" in quoted
    assert "<" not in quoted
