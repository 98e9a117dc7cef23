"""What a scan of a small log imports: each module is waited for. A name that is new here costs a tenth of a millisecond or more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
_PRINT = """\
import sys
before = set(sys.modules)
from lmdiag.cli import main
main(sys.argv[1:])
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""
HEALTHY = """\
lmdiag lmdiag.blocks lmdiag.cli lmdiag.config lmdiag.errors lmdiag.examine lmdiag.lazy_pattern lmdiag.model
lmdiag.pipeline lmdiag.quick_options lmdiag.scan lmdiag.scan_inputs lmdiag.scan_progress lmdiag.tally
lmdiag.diagnose lmdiag.diagnose.candidates lmdiag.diagnose.cards lmdiag.diagnose.chains lmdiag.diagnose.diagnoser
lmdiag.diagnose.facts lmdiag.diagnose.incidents lmdiag.diagnose.lives lmdiag.diagnose.redact lmdiag.diagnose.stalled
lmdiag.diagnose.stalls lmdiag.diagnose.verdict lmdiag.diagnose.verdicts
lmdiag.match lmdiag.match.cards lmdiag.match.catalog_format lmdiag.match.clues lmdiag.match.index lmdiag.match.library
lmdiag.match.matcher lmdiag.match.pack lmdiag.match.patterns lmdiag.match.rulebook lmdiag.match.templates
lmdiag.parse lmdiag.parse.anchors lmdiag.parse.assembler lmdiag.parse.chatter lmdiag.parse.clean lmdiag.parse.containers
lmdiag.parse.groups lmdiag.parse.jsonlines lmdiag.parse.last_record lmdiag.parse.lmcache lmdiag.parse.logical
lmdiag.parse.messages lmdiag.parse.notable lmdiag.parse.prefixes lmdiag.parse.progress lmdiag.parse.tracebacks
lmdiag.parse.wrapping
lmdiag.read lmdiag.read.adapters lmdiag.read.archives lmdiag.read.decoders lmdiag.read.files lmdiag.read.globs
lmdiag.read.lines lmdiag.read.lognames lmdiag.read.paths lmdiag.read.recode lmdiag.read.rotation
lmdiag.report lmdiag.report.control
"""
JSONL = "lmdiag.report.jsonl"
TEXT = """\
lmdiag.report.amounts lmdiag.report.context lmdiag.report.document lmdiag.report.layout lmdiag.report.plain
lmdiag.report.sections lmdiag.report.text
"""
INCIDENT = """\
lmdiag.digests lmdiag.diagnose.advice lmdiag.diagnose.edits lmdiag.diagnose.known lmdiag.diagnose.raised
lmdiag.match.catalog lmdiag.match.catalog_words lmdiag.match.conditions lmdiag.match.history lmdiag.match.known_sites
lmdiag.match.packages lmdiag.match.prose lmdiag.match.raise_sites lmdiag.match.settings lmdiag.match.sums
lmdiag.match.versions
"""
INCIDENT_TEXT = "lmdiag.report.incident lmdiag.report.raise_site lmdiag.report.relevant"
FORBIDDEN = """\
argparse gettext locale shutil copy weakref dataclasses inspect ast dis tokenize linecache asyncio logging
threading queue concurrent subprocess selectors signal socket ssl http email urllib hashlib hmac random secrets
tempfile uuid pickle sqlite3 csv decimal fractions statistics difflib textwrap pprint bz2 lzma gzip tarfile
zipfile importlib.metadata importlib.resources multiprocessing argcomplete regex rich msgspec urllib3 watchdog
prometheus_client zstandard stringzilla
"""
FOR_A_CARD_ONLY = "tomllib datetime shlex string"


def imported(log: Path, form: str) -> set[str]:
    """The modules that a scan imports, beyond what the interpreter begins with."""
    command = (sys.executable, "-c", _PRINT, "scan", "--format", form, str(log))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.split()) - {"lmdiag.rules"}  # a checkout has no such package


def own(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.partition(".")[0] == "lmdiag")


@pytest.mark.parametrize(
    ("log", "form", "expected", "forbidden"),
    [
        ("healthy/requests-032.log", "jsonl", HEALTHY + JSONL, FORBIDDEN + FOR_A_CARD_ONLY),
        ("healthy/requests-032.log", "text", HEALTHY + TEXT, FORBIDDEN + FOR_A_CARD_ONLY),
        ("logs/kv-cache-too-small.log", "jsonl", HEALTHY + INCIDENT + JSONL, FORBIDDEN),
        ("logs/kv-cache-too-small.log", "text", HEALTHY + TEXT + INCIDENT + INCIDENT_TEXT, FORBIDDEN),
    ],
)
def test_a_scan_imports_only_what_it_needs(log: str, form: str, expected: str, forbidden: str) -> None:
    modules = imported(ROOT / log, form)
    assert own(modules) == sorted(expected.split())
    assert modules & set(forbidden.split()) == set()
