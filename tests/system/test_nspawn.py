"""The real unit under a real systemd: ready, reports, watchdog, kill, credentials, reload, hidden places, removal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nspawn
import pytest
from nspawn import CHECKOUT, Machine

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(bool(nspawn.missing()), reason=nspawn.missing() or "there is a machine"),
]

UNIT = "lmdiag.service"
LMDIAG = str(Path(sys.prefix) / "bin/lmdiag")
LOG = (CHECKOUT / "tests/logs/mla-serde-start-failed.log").read_text(encoding="utf-8")
CARD = "lmcache-mla-naive-serde"
CONFIG = 'paths = ["/var/log/vllm"]\nformat = "jsonl"\nsettle = "200ms"\nscan-interval = "500ms"\n'


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nspawn.root_directory(tmp_path_factory.mktemp("debian"))


@pytest.fixture
def machine(root: Path) -> Iterator[Machine]:
    with Machine(root) as machine:
        yield machine


def install(machine: Machine, *options: str, config: str = CONFIG, drop_in: str = "") -> None:
    """Install the service with a configuration and a drop-in of the test's own, and see that it is up."""
    machine.write("/etc/lmdiag/config.toml", config)
    if drop_in:
        machine.write(f"/etc/systemd/system/{UNIT}.d/test.conf", f"[Service]\n{drop_in}\n")
    machine.run(LMDIAG, "service", "install", *options)
    assert machine.shown(UNIT, "ActiveState") == "active"


def incidents(machine: Machine) -> list[dict[str, Any]]:
    """The incidents that the service has reported so far."""
    found = []
    for line in machine.journal(UNIT).splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            found += [row] if row["kind"] == "incident" else []
    return found


def opened(machine: Machine) -> list[tuple[str, str]]:
    """The incidents reported as new, by source and id. A report may come twice after a kill, but under its one id."""
    return sorted({(row["source"], row["id"]) for row in incidents(machine) if row["state"] == "opened"})


def wait_for_reports(machine: Machine, *paths: str) -> None:
    machine.until(lambda: {row["source"] for row in incidents(machine)} >= set(paths), f"reports of {', '.join(paths)}")


def wait_for_restart(machine: Machine, restarts: int) -> None:
    """Wait until systemd has started the service again so often, and it is ready."""
    machine.until(
        lambda: (machine.shown(UNIT, "NRestarts"), machine.shown(UNIT, "ActiveState")) == (str(restarts), "active"),
        f"restart {restarts}",
        60,
    )


def test_an_installed_service_is_ready_and_reports(machine: Machine) -> None:
    said = machine.run(LMDIAG, "service", "install").stdout
    assert "ran systemctl enable --now lmdiag.service" in said
    assert machine.shown(UNIT, "ActiveState") == "active"
    machine.write("/var/log/vllm/a.log", LOG)
    machine.until(lambda: CARD in machine.journal(UNIT), "a report in the journal")
    errors = machine.run("journalctl", f"_SYSTEMD_UNIT={UNIT}", "--priority=crit", "-o", "cat").stdout
    assert CARD in errors, "its lines have the incident's priority"
    assert "<2>" not in errors
    again = machine.run(LMDIAG, "service", "install").stdout
    assert "restart" not in again
    status = machine.run(LMDIAG, "service", "status").stdout
    assert "ActiveState=active" in status


def test_it_runs_as_nobody_with_the_groups_that_read_logs(machine: Machine) -> None:
    install(machine)
    machine.write("/var/log/vllm/adm.log", LOG, mode="640")
    machine.run("chgrp", "adm", "/var/log/vllm/adm.log")
    wait_for_reports(machine, "/var/log/vllm/adm.log")
    pid = machine.shown(UNIT, "MainPID")
    status = machine.run("cat", f"/proc/{pid}/status").stdout
    assert "CapEff:\t0000000000000000" in status
    uid = int(status.partition("Uid:")[2].split()[0])
    assert 61184 <= uid <= 65519, "DynamicUser"
    assert machine.run("stat", "-c", "%a", "/var/lib/private/lmdiag").stdout == "700\n"


def test_the_watchdog_ends_a_daemon_that_hangs(machine: Machine) -> None:
    install(machine, drop_in="WatchdogSec=3\nRestartSec=1")
    machine.write("/var/log/vllm/a.log", LOG)
    wait_for_reports(machine, "/var/log/vllm/a.log")
    machine.run("systemctl", "kill", "--kill-whom=main", "--signal=STOP", UNIT)
    wait_for_restart(machine, 1)
    assert "Watchdog timeout" in machine.run("journalctl", "-u", UNIT, "-o", "cat").stdout
    assert "Fatal Python error: Aborted" in machine.journal(UNIT), "it says where it hung"
    machine.write("/var/log/vllm/b.log", LOG)
    wait_for_reports(machine, "/var/log/vllm/b.log")
    assert [source for source, _ in opened(machine)] == ["/var/log/vllm/a.log", "/var/log/vllm/b.log"]


def test_a_daemon_that_does_not_hang_is_left_alone(machine: Machine) -> None:
    install(machine, drop_in="WatchdogSec=1")
    pid = machine.shown(UNIT, "MainPID")
    machine.run("sleep", "4")
    assert (machine.shown(UNIT, "MainPID"), machine.shown(UNIT, "NRestarts")) == (pid, "0")


def test_a_killed_daemon_goes_on_where_it_was(machine: Machine) -> None:
    install(machine, drop_in="RestartSec=1")
    machine.write("/var/log/vllm/a.log", LOG)
    wait_for_reports(machine, "/var/log/vllm/a.log")
    machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", UNIT)
    machine.write("/var/log/vllm/b.log", LOG)  # while it is dead
    wait_for_restart(machine, 1)
    wait_for_reports(machine, "/var/log/vllm/b.log")
    machine.run("systemctl", "restart", UNIT)
    machine.write("/var/log/vllm/c.log", LOG)
    wait_for_reports(machine, "/var/log/vllm/c.log")
    assert [source for source, _ in opened(machine)] == [f"/var/log/vllm/{name}.log" for name in "abc"]


def test_secrets_are_credentials(machine: Machine) -> None:
    machine.write("/etc/lmdiag/webhook-secret", "whsec_of_the_test\n", mode="600")
    install(machine, drop_in="LoadCredential=webhook-secret:/etc/lmdiag/webhook-secret")
    pid = machine.shown(UNIT, "MainPID")
    directory = "/run/credentials/lmdiag.service"
    assert f"CREDENTIALS_DIRECTORY={directory}\0" in machine.run("cat", f"/proc/{pid}/environ").stdout
    uid = machine.run("stat", "-c", "%u", f"/proc/{pid}").stdout.strip()
    as_service = ["nsenter", "--target", pid, "--mount", "--setuid", uid, "--setgid", uid, "cat"]
    assert machine.run(*as_service, f"{directory}/webhook-secret").stdout == "whsec_of_the_test\n"
    assert "Permission denied" in machine.run(*as_service, "/etc/lmdiag/webhook-secret", check=False).stderr


def test_a_wrong_configuration_leaves_the_last_good_one(machine: Machine) -> None:
    install(machine)
    pid = machine.shown(UNIT, "MainPID")
    machine.write("/etc/lmdiag/config.toml", CONFIG + "setle = 3\n")
    machine.run("systemctl", "reload", UNIT)
    machine.until(lambda: "last good configuration" in machine.journal(UNIT), "a word on the reload")
    assert "settle" in machine.journal(UNIT), "it says what was meant"
    machine.write("/var/log/vllm/a.log", LOG)
    wait_for_reports(machine, "/var/log/vllm/a.log")
    machine.write("/etc/lmdiag/config.toml", CONFIG.replace('"]', '", "/srv/other"]'))
    machine.run("systemctl", "reload", UNIT)
    machine.write("/srv/other/b.log", LOG)
    wait_for_reports(machine, "/srv/other/b.log")
    assert machine.shown(UNIT, "MainPID") == pid
    assert machine.shown(UNIT, "ActiveState") == "active"


def test_a_wrong_configuration_at_the_start_is_told_and_not_tried_again(machine: Machine) -> None:
    machine.write("/etc/lmdiag/config.toml", CONFIG + "setle = 3\n")
    done = machine.run(LMDIAG, "service", "install", check=False)
    assert done.returncode == 2
    assert "journalctl -u lmdiag.service" in done.stderr
    assert machine.shown(UNIT, "ActiveState") == "failed"
    assert machine.shown(UNIT, "ExecMainStatus") == "2"


def test_it_reads_the_journal_of_a_unit(machine: Machine) -> None:
    machine.write("/srv/vllm.log", LOG)
    machine.write(
        "/etc/systemd/system/vllm-fake.service", "[Service]\nType=oneshot\nExecStart=/bin/cat /srv/vllm.log\n"
    )
    install(machine, config=CONFIG + 'journal = ["vllm-fake.service"]\n')
    machine.run("systemctl", "start", "vllm-fake.service")
    wait_for_reports(machine, "journal:vllm-fake.service")
    assert [row["card"] for row in incidents(machine) if row["state"] == "opened"] == [CARD]


def test_the_drop_ins_open_what_the_unit_hides(machine: Machine) -> None:
    hidden = {
        "docker": "/var/lib/docker/containers/0a1b/0a1b-json.log",
        "kubernetes": "/var/log/pods/default_vllm-0_0a1b/vllm/0.log",
        "ray": "/tmp/ray/session_latest/logs/worker-0a1b.err",  # noqa: S108
    }
    for kind, path in hidden.items():
        machine.write(path, as_written_by(kind), mode="644" if kind == "ray" else "640")
    machine.run("chmod", "710", "/var/lib/docker", "/var/lib/docker/containers", "/var/lib/docker/containers/0a1b")
    machine.run("chmod", "750", "/var/log/pods")
    machine.write("/root/.ssh/id_ed25519", "a key", mode="600")
    look = [f"ExecStartPost=-/bin/sh -c 'head -c1 {path} >/dev/null && echo sees {path}'" for path in
            (*hidden.values(), "/etc/shadow", "/root/.ssh/id_ed25519")]  # fmt: skip
    paths = ", ".join(f'"{path}"' for path in ("/var/log/vllm", *(str(Path(path).parent) for path in hidden.values())))
    config = CONFIG.replace('"/var/log/vllm"', paths)
    install(machine, config=config, drop_in="\n".join(look))
    assert "sees" not in machine.journal(UNIT)
    machine.run(LMDIAG, "service", "install", *(f"--with={kind}" for kind in hidden))
    machine.until(lambda: len(opened(machine)) == len(hidden), "a report of each log")
    assert {line for line in machine.journal(UNIT).splitlines() if line.startswith("sees")} == {
        f"sees {path}" for path in hidden.values()
    }


def as_written_by(kind: str) -> str:
    """The log in the form in which this kind of node writes it."""
    at = "2026-01-28T10:40:07.123456789Z"
    if kind == "docker":
        return "".join(
            json.dumps({"log": line + "\n", "stream": "stderr", "time": at}) + "\n" for line in LOG.splitlines()
        )
    return "".join(f"{at} stderr F {line}\n" for line in LOG.splitlines()) if kind == "kubernetes" else LOG


def test_a_removed_service_leaves_nothing(machine: Machine) -> None:
    machine.run(LMDIAG, "service", "install", "--with", "ray")
    traces = ["find", "/etc", "/var/lib", "/run/systemd", "-name", "*lmdiag*"]
    assert "/var/lib/private/lmdiag" in machine.run(*traces).stdout.splitlines()
    assert "lmdiag" in programs(machine)
    machine.run(LMDIAG, "service", "uninstall", "--purge")
    assert machine.shown(UNIT, "LoadState") == "not-found"
    assert machine.run(*traces).stdout == ""
    assert "lmdiag" not in programs(machine)


def programs(machine: Machine) -> str:
    """What runs in the machine."""
    return machine.run("sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '").stdout


def test_a_program_in_a_closed_home_is_refused(machine: Machine) -> None:
    machine.run("mkdir", "-p", "/home/closed")
    machine.run("chmod", "700", "/home/closed")
    machine.run("ln", "-s", LMDIAG, "/home/closed/lmdiag")
    done = machine.run("/home/closed/lmdiag", "service", "install", check=False)
    assert done.returncode == 2
    assert "/home/closed is closed to others (mode 0700)" in done.stderr
    assert machine.shown(UNIT, "LoadState") == "not-found"
