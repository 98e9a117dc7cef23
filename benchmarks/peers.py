"""The other programs: how each is told to look for the same two exceptions, and which version is installed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.pairs import Bound
from benchmarks.processes import DATA, Command, output_of

_PLACE = DATA / "peers"
FAIL2BAN = """\
[Definition]
failregex = ^.*\\b<F-ID>ValueError</F-ID>:
            ^.*\\b<F-ID>RuntimeError</F-ID>:
datepattern = %%m-%%d %%H:%%M:%%S
"""
"""With the date of these logs: fail2ban's own search for one takes twenty times as long."""
_SEC = "".join(
    f"type=Single\nptype=RegExp\npattern={name}: (.*)\ndesc=$0\naction=none\n\n"
    for name in ("ValueError", "RuntimeError")
)
_MTAIL = "counter errors by type\n" + "".join(
    f"/(?P<type>{name}): .*/ {{\n  errors[$type]++\n}}\n" for name in ("ValueError", "RuntimeError")
)


class Peer(NamedTuple):
    """A program that looks for two patterns in a log."""

    name: str
    command: Callable[[str], Command]
    """Gives what is run for the log of a path."""
    bound: Bound
    """How many times slower it must be than a scan with the whole pack."""
    version: Command
    module: str = ""
    """What must be importable, for a peer that is a library."""

    @property
    def installed(self) -> bool:
        """Whether it is on this machine."""
        return find_spec(self.module) is not None if self.module else shutil.which(self.version.argv[0]) is not None


def write(name: str, text: str) -> str:
    """Write a file that a peer is configured by; return its absolute path."""
    _PLACE.mkdir(parents=True, exist_ok=True)
    (_PLACE / name).write_text(text, encoding="utf-8")
    return str((_PLACE / name).resolve())


def _fail2ban(log: str) -> Command:
    return Command(("fail2ban-regex", log, write("fail2ban.conf", FAIL2BAN)))


def _sec(log: str) -> Command:
    return Command(("sec", f"--conf={write('sec.conf', _SEC)}", f"--input={log}", "--fromstart", "--notail"))


def _mtail(log: str) -> Command:
    program = write("errors.mtail", _MTAIL)
    return Command(("mtail", "--one_shot", "--progs", program, "--logs", log, "--log_dir", str(_PLACE)))


def _searchkit(log: str) -> Command:
    return Command((sys.executable, str(Path(__file__).with_name("searchkit_peer.py")), log))


def _lnav(log: str) -> Command:
    home = os.path.dirname(write("lnav", ""))
    return Command(("lnav", "-n", "-c", ":filter-in (?:ValueError|RuntimeError): ", log), {"HOME": home})


_SEARCHKIT_VERSION = "from importlib.metadata import version; print(version('searchkit'))"
PEERS = (
    Peer("fail2ban-regex", _fail2ban, Bound(30, at_least=True), Command(("fail2ban-regex", "--version"))),
    Peer("sec", _sec, Bound(12, at_least=True), Command(("sec", "--version"))),
    Peer("mtail", _mtail, Bound(8, at_least=True), Command(("mtail", "--version"))),
    Peer(
        "searchkit",
        _searchkit,
        Bound(6, at_least=True),
        Command((sys.executable, "-c", _SEARCHKIT_VERSION)),
        "searchkit",
    ),
    Peer("lnav", _lnav, Bound(3, at_least=True), Command(("lnav", "-V"))),
)
_LITERALS = ("-e", "Traceback", "-e", "Error")


def ripgrep(log: str) -> Command:
    """Return the run of ripgrep that counts the lines with one of two words."""
    return Command(("rg", "-c", "-F", *_LITERALS, log), good=(0, 1))


def grep(log: str) -> Command:
    """Return the same of grep, in the locale in which it is fast."""
    return Command(("grep", "-c", "-F", *_LITERALS, log), {"LC_ALL": "C"}, good=(0, 1))


def gunzip(log: str) -> Command:
    """Return the run of gzip that unpacks a log, into nothing."""
    return Command(("gzip", "-dc", log), discard=True)


def version_of(command: Command) -> str:
    """Return the version that a program says it has."""
    found = re.search(rb"\d+(?:\.\d+)+\S*", output_of(command))
    return found[0].decode().rstrip(",;)") if found else "of unknown version"


def versions() -> dict[str, str]:
    """Return the version of each program that is compared with, "" where it is not installed."""
    tools = {"ripgrep": "rg", "grep": "grep", "gzip": "gzip"}
    found = {
        name: version_of(Command((tool, "--version"))) if shutil.which(tool) else "" for name, tool in tools.items()
    }
    return found | {peer.name: version_of(peer.version) if peer.installed else "" for peer in PEERS}
