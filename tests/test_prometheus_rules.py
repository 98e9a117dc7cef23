"""The rules and the example that are shipped for Prometheus and Alertmanager, by Prometheus' own tools."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from lmdiag.forward.status import SinkStatus
from lmdiag.watch.counters import Counters, DaemonStatus, SourceStatus
from lmdiag.watch.metrics import Monitor

SHIPPED = Path(__file__).parent.parent / "docs" / "prometheus"
RULES = [
    rule for group in yaml.safe_load((SHIPPED / "lmdiag.rules.yml").read_text())["groups"] for rule in group["rules"]
]
TESTS = yaml.safe_load((SHIPPED / "lmdiag.rules.test.yml").read_text())["tests"]


def run(tool: str, *arguments: str) -> str:
    """Run a tool of Prometheus' on the shipped files; skip where it is not installed."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed (apt install prometheus prometheus-alertmanager)")
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=60, cwd=SHIPPED)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_takes_the_rules() -> None:
    assert f"{len(RULES)} rules found" in run("promtool", "check", "rules", "lmdiag.rules.yml")


def test_the_rules_pass_their_tests() -> None:
    run("promtool", "test", "rules", "lmdiag.rules.test.yml")


def test_alertmanager_takes_the_example() -> None:
    assert "2 receivers" in run("amtool", "check-config", "alertmanager.yml")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_rule_has_a_test_that_fires_and_one_that_stays_silent(rule: dict[str, Any]) -> None:
    name = rule["alert"]
    alerts = [case for test in TESTS for case in test.get("alert_rule_test", []) if case["alertname"] == name]
    firing = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    samples = [case for test in TESTS for case in test.get("promql_expr_test", []) if case["expr"] == firing]
    assert any(not case["exp_alerts"] for case in alerts)
    assert any(case["exp_alerts"] for case in alerts) or any(case["exp_samples"] for case in samples)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_rule_says_how_bad_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["annotations"].keys() == {"summary", "description"}
    if rule["alert"] != "LmdiagIncidentOpened":  # it has the card's
        assert rule["labels"]["severity"] in ("info", "warning", "error", "critical")


def test_the_rules_name_metrics_that_there_are() -> None:
    counters = Counters()
    counters.know_cards([("mla", "critical")])
    counters.know_source("a.log")
    sink = SinkStatus("fleet", "alertmanager", results=(("delivered", 1),), lost=(("dead", 1),))
    status = DaemonStatus(1, "1.2.3", 1.0, 1.0, (SourceStatus("a.log", "file"),), sinks=(sink,))
    served = Monitor(counters, status).metrics("")[1].decode()
    for rule in RULES:
        for name in re.findall(r"\blmdiag_\w+", rule["expr"]):
            labels = re.findall(r"\b(\w+)!?=", rule["expr"])
            series = re.findall(rf"^{name}(?:{{.*}})? ", served, re.MULTILINE)
            assert series, f"{rule['alert']}: {name} is not served"
            assert all(f'{label}="' in one for label in labels for one in series)


def test_the_metrics_of_the_tests_are_those_of_the_rules() -> None:
    in_rules = {name for rule in RULES for name in re.findall(r"\b(?:lmdiag_\w+|up\b)", rule["expr"])}
    in_tests = {series["series"].split("{")[0] for test in TESTS for series in test["input_series"]}
    assert in_tests == in_rules


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("alertname=LmdiagIncident severity=critical card=mla", "pager,chat"),
        ("alertname=LmdiagIncident severity=critical card=none", "pager,chat"),
        ("alertname=LmdiagIncident severity=error card=mla", "chat"),
        ("alertname=LmdiagIncident severity=error card=none", "chat"),
        ("alertname=LmdiagDown severity=error", "chat"),
        ("alertname=NodeDown severity=critical", "chat"),
    ],
)
def test_the_example_sends_alerts_where_it_says(labels: str, receivers: str) -> None:
    told = run("amtool", "config", "routes", "test", "--config.file=alertmanager.yml", *labels.split())
    assert told.strip() == receivers
