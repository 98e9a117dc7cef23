from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.cli_parser import parser
from lmdiag.quick_options import quick_options

VALUES = ("text", "jsonl", "xml", "warning", "critical", "never", "2h", "", "a=b", "-", "-1", "--format", "x y")
FLAGS = (
    *("--help", "--rotated", "--since", "--until", "--last", "--fail-on", "--exit-zero", "--forward", "--config", "-j"),
    *("--no-progress", "-v", "--verbose", "--format", "--rules", "--disable", "--color", "--width", "--version"),
)
WORDS = st.one_of(
    st.sampled_from(("a.log", "b.log", "-", "--", "-vv", "--form", "-j2")),
    st.sampled_from(FLAGS),
    st.sampled_from(VALUES),
    st.builds("{}={}".format, st.sampled_from(FLAGS), st.sampled_from(VALUES)),
)


def parsed(arguments: list[str]) -> dict[str, object] | None:
    """What argparse makes of them; None: a mistake, or help."""
    try:
        return vars(parser(arguments).parse_args(arguments))
    except SystemExit:
        return None


@given(st.lists(WORDS, max_size=7))
def test_what_is_read_quickly_is_what_argparse_reads(words: list[str]) -> None:
    quick = quick_options(["scan", *words])
    assert quick is None or vars(quick) == parsed(["scan", *words])


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.log"],
        ["a.log", "b.log", "--format", "jsonl"],
        ["--format=markdown", "-v", "--rotated", "--exit-zero", "--no-progress", "-"],
        ["--rules", "mine", "--rules=more", "--disable", "x", "--fail-on", "critical", "--color", "never", "a.log"],
        ["--since", "2026-12-01 02:00", "--until", "02:00", "--last=2h", "a.log"],
    ],
    ids=" ".join,
)
def test_what_is_asked_nearly_always_needs_no_argparse(arguments: list[str]) -> None:
    quick = quick_options(["scan", *arguments])
    assert quick is not None
    assert vars(quick) == parsed(["scan", *arguments])


@pytest.mark.parametrize("arguments", [[], ["scan"], ["watch", "a.log"], ["scan", "a.log", "--help"]], ids=" ".join)
def test_all_else_is_left_to_argparse(arguments: list[str]) -> None:
    assert quick_options(arguments) is None
