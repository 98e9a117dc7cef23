"""What the catalogue of raise sites costs: one look-up, its loading in a scan that needs it, and nothing in one that does not."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from lmdiag.match.catalog_format import HOLE, LINE_BREAK, OPAQUE
from lmdiag.match.library import open_library
from lmdiag.match.packages import Located
from lmdiag.match.raise_sites import RaiseSites

FAILED, HEALTHY = "tests/logs/mla-serde-start-failed.log", "tests/healthy/requests-032.log"
CEILINGS = {"lookup_us": 25.0, "load_ms": 15.0}
MESSAGES, PAIRS = 1000, 15
_VALUES = ("16", "Qwen/Qwen2-7B", "['a', 'b']", "/srv/model")
_SCAN = """
import sys
from lmdiag.match import library
if {without}:
    library.Library.sites = property(lambda self: [])
from lmdiag.cli import main
main(["scan", "--format", "jsonl", "--exit-zero", {log!r}])
"""
_LOADED = "import json; json.dump(sorted(set(sys.modules)), sys.stderr)"
_OF_THE_CATALOG = ("lmdiag.match.catalog", "lmdiag.match.raise_sites", "lmdiag.diagnose.raised", "lmdiag.match.foreign")

Lookup = tuple[str, Located, dict[str, str | None]]


def lookups(sites: RaiseSites) -> list[Lookup]:
    """Return messages made of random templates, each with the frame and the version of one of its sites."""
    pick, catalog, found = random.Random(7), sites.catalog, list[Lookup]()  # noqa: S311 - the same ones each time
    while len(found) < MESSAGES:
        number = pick.randrange(len(catalog.texts))
        key = catalog.texts[number].replace(LINE_BREAK, " ")
        if key.startswith(OPAQUE):
            continue
        site = pick.choice(catalog.row(number).sites)
        release = pick.choice([item for item in range(site.first, site.last + 1) if site.is_in(item)])
        message = "".join(part if part != HOLE else pick.choice(_VALUES) for part in key)
        frame = Located(site.project, site.file, site.function, site.lines_in(release)[0])
        found.append((message, frame, {site.project: site.releases[release]}))
    return found


def lookup_us(sites: RaiseSites) -> list[float]:
    """Return microseconds a look-up, over all messages, for each of several rounds; what is unpacked stays so."""
    made, rounds = lookups(sites), list[float]()
    for _ in range(PAIRS):
        start = time.perf_counter()
        for message, frame, versions in made:
            sites.find(None, message, frame, versions)
        rounds.append((time.perf_counter() - start) / len(made) * 1e6)
    return rounds


def _seconds(log: str, *, without: bool) -> float:
    start = time.perf_counter()
    code = _SCAN.format(without=without, log=log)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    return time.perf_counter() - start


def load_ms() -> list[float]:
    """Return milliseconds that the catalogue adds to a scan that has an incident: whole processes, in pairs."""
    _seconds(FAILED, without=True)
    return [(_seconds(FAILED, without=False) - _seconds(FAILED, without=True)) * 1e3 for _ in range(PAIRS)]


def loaded_in_vain() -> list[str]:
    """Return the modules of the catalogue that a scan without an incident loads."""
    code = _SCAN.format(without=False, log=HEALTHY) + _LOADED
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    return sorted(set(_OF_THE_CATALOG) & set(json.loads(done.stderr)))


def _say(what: str, values: Sequence[float], unit: str, ceiling: float) -> bool:
    median = statistics.median(values)
    print(f"{what}: {median:.1f} {unit} ({min(values):.1f} to {max(values):.1f}), at most {ceiling:.0f}")
    return median <= ceiling


def main() -> int:
    """Measure and print; the exit code is 1 if a ceiling is broken."""
    good = _say("one look-up", lookup_us(open_library().sites[0]), "µs", CEILINGS["lookup_us"])
    good &= _say("loading, in a scan that needs it", load_ms(), "ms", CEILINGS["load_ms"])
    vain = loaded_in_vain()
    print(f"loaded by a scan that does not: {', '.join(vain) or 'nothing'}")
    return int(not good or bool(vain))


if __name__ == "__main__":
    raise SystemExit(main())
