from __future__ import annotations

import io
from pathlib import Path

import pytest
from test_library_commands import CARD, MESSAGE

from lmdiag import card_checks
from lmdiag.errors import CardError, InputError


def check(directory: Path) -> tuple[int, str]:
    out = io.StringIO()
    return card_checks.check(str(directory), out), out.getvalue()


def run(directory: Path, *logs: Path) -> tuple[int, list[str]]:
    out = io.StringIO()
    return card_checks.test(str(directory), [str(path) for path in logs], out), out.getvalue().splitlines()


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "site-serde.toml").write_text(CARD, encoding="utf-8")
    return tmp_path


def test_good_cards_pass_the_check(rules: Path) -> None:
    assert check(rules) == (0, "cards that load: 1; problems: 0\n")


BAD = {
    "no TOML": ("title =", "site-bad.toml: is not TOML"),
    "an unknown key": (CARD + "\n[colour]\n", "site-bad.toml: colour"),
    "a missing field": (CARD.replace('scope = "startup"', ""), "site-bad.toml: scope"),
    "a sample that does not match": (CARD.replace("serde a of 3 is not naive", "serde a of 3 is fine"), "site-bad.toml: sample[0].log"),
    "a near miss that fires": (CARD.replace('"ValueError: serde is naive"', '"ValueError: serde b of 4 is not naive"'), "site-bad.toml: near_miss[0].log"),
    "wrong fields": (CARD.replace('fields = { serde = "a"', 'fields = { serde = "b"'), "site-bad.toml: sample[0].fields"),
    "a flag that no release has": (CARD.replace('"--seed"', '"--max-modell-len"'), "site-bad.toml: card.solutions[0].change.--max-modell-len: no release"),
    "a pattern that is none": (CARD.replace("message =", "pattern ="), "site-bad.toml: "),
}  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), BAD.values(), ids=BAD)
def test_a_bad_card_is_told_with_file_and_key(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "site-bad.toml").write_text(text, encoding="utf-8")
    code, found = check(tmp_path)
    assert code == 1
    assert f"{tmp_path}/{problem}" in found


def test_what_cannot_be_checked_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CardError, match="is not a directory"):
        check(tmp_path / "missing")




def test_a_sample_that_a_shipped_card_claims_is_told(rules: Path) -> None:
    """The shipped card has more literal text, so it would win in a scan."""
    words = "Total number of attention heads (40) must be divisible by tensor parallel size (3)."
    text = CARD.replace("serde {serde} of {total} is not naive", "Total number of attention {serde} must {total}.")
    text = text.replace("serde a of 3 is not naive", words)
    (rules / "site-serde.toml").write_text(text, encoding="utf-8")
    code, found = check(rules)
    assert code == 1
    assert "attention-heads-not-divisible" in found


def test_each_sample_is_run_and_named(rules: Path) -> None:
    assert run(rules) == (0, ["ok   site-serde sample[0]", "ok   site-serde near_miss[0]"])
    (rules / "site-serde.toml").write_text(CARD.replace("serde is naive", "serde b of 4 is not naive"), encoding="utf-8")
    code, lines = run(rules)
    assert code == 1
    assert lines[1].startswith("FAIL site-serde near_miss[0]: ")


def test_cards_are_tried_on_logs(rules: Path, tmp_path: Path) -> None:
    hit, miss = tmp_path / "a.log", tmp_path / "b.log"
    hit.write_text(f"\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: {MESSAGE}\n")
    miss.write_text("INFO nothing\n")
    code, lines = run(rules, hit, miss)
    assert code == 0
    assert lines[2:] == [f"{hit}:2 site-serde (exact) serde=abc, total=3", f"{miss}: none of the 1 cards"]


def test_what_cannot_be_read_is_an_error(rules: Path, tmp_path: Path) -> None:
    with pytest.raises(CardError, match="is not a directory"):
        run(tmp_path / "missing")
    with pytest.raises(InputError):
        run(rules, tmp_path / "missing.log")
