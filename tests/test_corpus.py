"""Re-created and real cases with labels, where they lie beside the project: how many causes are found, and found alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_logs import scan

from lmdiag.model import Incident

CASES = Path(__file__).parents[2] / "shared"


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _names(label: dict[str, Any], incident: Incident) -> bool:
    root = incident.root
    if root is None:
        return False
    name = (root.type or "").rsplit(".", 1)[-1]
    wanted = label["root_type"]
    if not (wanted.startswith("(") or name == wanted or {name, wanted} <= {"ValueError", "ValidationError"}):
        return False
    return not label["score_message"] or _squeezed(root.message).startswith(_squeezed(label["root_message"]))


def verdict(label: dict[str, Any], incidents: list[Incident]) -> str:
    """exact, found (beside others), missed, or for logs without a visible cause: quiet, honest, wrong."""
    if label["root_type"] == "(none)":
        return "quiet" if all(item.severity == "info" or item.scope == "request" for item in incidents) else "wrong"
    if label["root_type"] == "(unknown)":
        return "honest" if [item.cause_visible for item in incidents] == [False] else "wrong"
    if not any(_names(label, item) for item in incidents):
        return "missed"
    return "exact" if len(incidents) == 1 else "found"


@pytest.mark.parametrize(("folder", "found", "exact"), [("corpus", 0.97, 0.93), ("reallogs", 0.96, 0.90)])
def test_causes_are_found(folder: str, found: float, exact: float) -> None:
    """The shares that a release must reach; a wrong alarm or a false claim of a cause is never allowed."""
    labels = CASES / folder / "labels.jsonl"
    if not labels.is_file():
        pytest.skip(f"no labelled cases in {labels.parent}")
    tally: Counter[str] = Counter()
    for line in labels.read_text(encoding="utf-8").splitlines():
        label = json.loads(line)
        tally[verdict(label, scan(labels.parent / label["file"]))] += 1
    rooted = tally["exact"] + tally["found"] + tally["missed"]
    assert tally["wrong"] == 0
    assert (tally["exact"] + tally["found"]) / rooted >= found
    assert tally["exact"] / rooted >= exact


# Raised by Python itself or by an extension module, in a frame of vLLM or LMCache: no raise site of theirs.
_OF_PYTHON = ("ModuleNotFoundError", "FileNotFoundError", "PermissionError")
_OURS = ("vllm", "lmcache")


def test_errors_of_vllm_and_lmcache_get_their_raise_site_and_no_others() -> None:
    folders = [folder for folder in (CASES / "corpus", CASES / "reallogs") if (folder / "labels.jsonl").is_file()]
    if not folders:
        pytest.skip(f"no labelled cases in {CASES}")
    paths = [path for folder in folders for path in sorted(folder.glob("*.log"))]
    raised = [(item.root, item.raised_at) for path in paths for item in scan(path) if item.root and item.raised_at]
    found = [(root, site) for root, site in raised if site.told_by != "card"]  # a card says where what pydantic raises comes from
    ours = [site for root, site in found if site.project in _OURS and root.type not in _OF_PYTHON]
    others = [site for _, site in raised if site.project not in _OURS]
    assert len(ours) > 70
    assert sum(site.catalog is not None for site in ours) / len(ours) >= 0.98
    assert [site for site in others if site.catalog] == []
