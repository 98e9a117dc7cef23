"""Which log an alert's labels name, and that they name none outside of the template's directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lmdiag.errors import UsageError
from lmdiag.read.globs import find
from lmdiag.receive.template import LabelError, LogTemplate

PODS = "/var/log/pods/{namespace}_{pod}_*/{container}/*.log"


def test_labels_are_filled_in() -> None:
    labels = {"namespace": "prod", "pod": "vllm-0", "container": "vllm.x", "other": "../.."}
    assert LogTemplate(PODS).pattern(labels) == "/var/log/pods/prod_vllm-0_*/vllm.x/*.log"
    assert LogTemplate("/logs/{a}{a}-{b}").pattern({"a": "x", "b": "node7:8000"}) == "/logs/xx-node7:8000"
    assert LogTemplate("/logs/{job}.log").pattern({"job": "vllm_1"}) == "/logs/vllm_1.log"


@pytest.mark.parametrize(
    "value",
    ["..", ".", "a/b", "/etc", "a..b", "*", "a?", "[a]", "{pod}", "", " ", "a b", "a\0b", "a\nb", "ä", "%2e%2e", "~", "$HOME", "\ud800", "a\n", "x" * 300 + "/"],
)  # fmt: skip
def test_what_may_not_stand_in_a_path_is_refused(value: str) -> None:
    with pytest.raises(LabelError, match=r"the label pod|no label pod") as error:
        LogTemplate("/logs/{pod}/x.log").pattern({"pod": value})
    assert len(str(error.value)) < 250
    assert str(error.value).isprintable()


def test_a_label_that_is_missing_is_named() -> None:
    with pytest.raises(LabelError, match="no label container"):
        LogTemplate(PODS).pattern({"namespace": "a", "pod": "b"})


@pytest.mark.parametrize(
    "template",
    ["/var/log/x.log", "{pod}/x.log", "/{pod}/x.log", "logs/{pod}.log", "/logs/{pod", "/logs/{}.log", "/logs/{a-b}",
     "/logs/{0}", "/logs/{pod!r}", "/logs/../{pod}", "*/{pod}", "/*/{pod}", "/logs/}{pod}", ""],
)  # fmt: skip
def test_a_template_that_cannot_be_used_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="--logs"):
        LogTemplate(template)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files inside of the template's directory, and others around it."""
    top = tmp_path_factory.mktemp("tree")
    for name in ("logs/a/x.log", "logs/b/x.log", "x.log", "logs.d/x.log", "logs/a/b/x.log", "a/x.log"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    return top


PIECES = st.sampled_from(["..", "/", ".", "a", "b", "*", "?", "[", "]", "\0", "{", "}", "logs", "~", "\\", "%2e", "\n"])


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(), st.lists(PIECES).map("".join)), st.lists(PIECES).map("".join))
@example(a="a", b="a")
def test_no_labels_lead_out_of_the_directory(tree: Path, a: str, b: str) -> None:
    """Whatever the labels are, no file is found but one at the template's own depth below its directory."""
    try:
        pattern = LogTemplate(f"{tree}/logs/{{a}}/x.log").pattern({"a": a, "b": b})
    except LabelError:
        return
    found = list(find(pattern))
    assert set(found) <= {f"{tree}/logs/a/x.log", f"{tree}/logs/b/x.log"}
    assert len(found) <= 1
    assert os.path.normpath(pattern).startswith(f"{tree}/logs/")
