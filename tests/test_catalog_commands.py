from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from catalog_samples import rows_of_releases, site

from lmdiag import catalog_commands, catalog_diff_command
from lmdiag.catalog.encode import encode
from lmdiag.catalog.sites import Site
from lmdiag.errors import CatalogError, UsageError

LIMIT = "The length {n} is larger than the limit"
LIMITS = "The length {n} is larger than the limits"
RANK = "rank {r} asks for more than its share"
PATHS = {"other": "vllm/v1/engine.py"}
RELEASES: dict[str, list[Site]] = {
    "vllm 0.1.0": [
        site(LIMIT, line=5), site("these words are retyped one day"), site("what leaves with this release"),
        site("what moves to another function"), site("a tensor of four ranks", how="assert", type="AssertionError"),
    ],
    "vllm 0.2.0": [
        site(LIMITS, line=7), site("these words are retyped one day", type="TypeError"), site(RANK, file=PATHS["other"]),
        site("what moves to another function", name="other"), site("a tensor of five ranks", how="assert", type="AssertionError"),
    ],
    "vllm 0.2.1": [site(LIMITS, line=8)],
    "lmcache 0.5.0": [site(LIMITS, file="lmcache/a.py", name="check", line=3)],
}  # fmt: skip
Command = Callable[[io.StringIO, io.StringIO], int]


def write(directory: Path, releases: dict[str, list[Site]]) -> str:
    """Make a directory of rules that has a catalogue."""
    (directory / "catalog").mkdir(parents=True)
    (directory / "catalog" / "catalog.bin").write_bytes(encode(rows_of_releases(releases)))
    return str(directory)


@pytest.fixture(autouse=True)
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = write(tmp_path / "shipped", RELEASES)
    monkeypatch.setattr("lmdiag.match.library.shipped_directory", lambda: directory)
    return Path(directory)


def run(command: Command) -> tuple[int, str, str]:
    """Exit code, what is printed, and problems."""
    out, err = io.StringIO(), io.StringIO()
    return command(out, err), out.getvalue(), err.getvalue()


def find(message: str, *, rules: tuple[str, ...] = (), style: str = "text", **ran: str) -> tuple[int, str, str]:
    versions: dict[str, str | None] = {"vllm": None, "lmcache": None, **ran}
    return run(lambda out, err: catalog_commands.find(message, versions, rules, style, out, err))


def found(message: str, vllm: str | None = None, lmcache: str | None = None) -> list[dict[str, Any]]:
    """What is found, as data."""
    versions = {"vllm": vllm, "lmcache": lmcache}
    text = run(lambda out, err: catalog_commands.find(message, versions, (), "jsonl", out, err))[1]
    return [json.loads(line) for line in text.splitlines()]


def id_of(message: str) -> str:
    return str(found(message)[0]["id"])


def show(row_id: str, *, rules: tuple[str, ...] = (), style: str = "text") -> tuple[int, str, str]:
    return run(lambda out, err: catalog_commands.show(row_id, rules, style, out, err))


def diff(
    old: str, new: str, *, project: str = "vllm", path: str = "", rules: tuple[str, ...] = (), style: str = "text",
    assertions: bool = False,
) -> str:  # fmt: skip
    code, text, problems = run(
        lambda out, err: catalog_diff_command.diff(old, new, project, path, rules, style, out, err, assertions=assertions)
    )
    assert (code, problems) == (0, "")
    return text


# -- find ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "ValueError: ", "vllm.errors.ValueError: ", "  \nValueError:", "ERROR [core.py:1] ValueError: "])
def test_a_message_is_found_with_its_type_or_without(before: str) -> None:
    code, text, problems = find(f"{before}The length 9 is larger than the limits")
    assert (code, problems) == (0, "")
    assert f"  ValueError: {LIMITS}\n" in text
    assert "    vllm/config/model.py:8 in check\n" in text
    assert "one more site: lmdiag catalog show " in text


def test_the_version_that_ran_gives_the_line() -> None:
    text = find("The length 9 is larger than the limits", vllm="0.2.0")[1]
    assert "raised in vllm 0.2.0\n    vllm/config/model.py:7 in check\n" in text
    assert "blob/v0.2.0/vllm/config/model.py#L7\n" in text


def test_a_build_of_a_release_is_that_release() -> None:
    assert found("The length 9 is larger than the limits", vllm="v0.2.0+cu129")[0]["site"]["lines"] == [7]


def test_the_other_project_can_be_asked_for() -> None:
    (match,) = found("The length 9 is larger than the limits", lmcache="0.5.0")
    assert (match["site"]["project"], match["in_version"]) == ("lmcache", True)


def test_a_release_without_the_message_is_told() -> None:
    code, text, _ = find("The length 9 is larger than the limit", vllm="0.2.0")
    assert code == 0
    assert "not raised in vllm 0.2.0; this is the last release that does:\n  raised in vllm 0.1.0\n" in text
    assert f"reworded in 0.2.0: {id_of('The length 9 is larger than the limits')}  {LIMITS}\n" in text
    (match,) = found("The length 9 is larger than the limit", vllm="0.2.0")
    assert (match["in_version"], match["site"]["version"], match["reworded"]["version"]) == (False, "0.1.0", "0.2.0")


def test_an_unknown_version_is_told_and_the_answer_still_given() -> None:
    code, text, problems = find("The length 9 is larger than the limits", vllm="0.2.9")
    assert code == 0
    assert "raised in vllm 0.2.1\n" in text
    assert "vllm 0.2.9 is not in the catalogue, which has 0.1.0 to 0.2.1; did you mean" in problems
    assert found("The length 9 is larger than the limits", vllm="0.2.9")[0]["in_version"] is None


def test_what_no_release_raises() -> None:
    for style in ("text", "jsonl"):
        assert find("good morning", style=style) == (1, "", "No release is known to raise this message.\n")


def test_what_has_the_words_of_an_unknown_message_is_told() -> None:
    code, text, problems = find("larger LIMITS")
    assert (code, text) == (1, "")
    assert problems.splitlines() == [
        "No release is known to raise this message; these have its words:",
        f"  {id_of('The length 9 is larger than the limits')}  {LIMITS}",
    ]


@pytest.mark.parametrize("message", ["", " \n\t"])
def test_nothing_is_no_message(message: str) -> None:
    with pytest.raises(UsageError, match="nothing to look up"):
        find(message)


def test_a_message_that_fits_many_says_how_many_more(tmp_path: Path) -> None:
    texts = [f"The length of the {name} is too large for it" for name in "abcdefg"]
    rules = write(tmp_path / "own", {"own 1.0": [site(text, file="own/a.py") for text in texts]})
    code, text, problems = find(f"> {' '.join(texts)} <", rules=(rules,))
    assert (code, text.count("own/a.py")) == (0, 5)
    assert problems == "2 more messages fit; more of the message tells them apart.\n"


def test_a_sites_own_catalogue_is_asked_too(tmp_path: Path) -> None:
    rules = write(tmp_path / "own", {"vllm_ascend 0.1.0": [site("No device of this kind was found here", file="vllm_ascend/a.py")]})
    code, text, _ = find("No device of this kind was found here", rules=(rules,))
    assert code == 0
    assert "vllm_ascend/a.py:10 in check" in text
    assert "https" not in text  # nobody knows where it lies


HOSTILE = "words of \u202eevil \x9b31m a stranger"


def test_hostile_text_of_a_catalogue_commands_no_terminal(tmp_path: Path) -> None:
    bad = site(HOSTILE, file="own/\x1b[31m.py", name="f\u202e", type="E\x07")
    rules = (write(tmp_path / "own", {"own 1.0\x1b[1m": [bad]}),)
    code, text, _ = find(HOSTILE, rules=rules)
    data = find(HOSTILE, rules=rules, style="jsonl")[1]
    whole = show(json.loads(data)["id"], rules=rules)[1]
    assert (code, "words of evil  a stranger" in text, "own/.py" in whole) == (0, True, True)
    for shown in (text, data, whole, *versions(rules), *versions(rules, "jsonl")):
        assert not [char for char in shown if not char.isprintable() and char != "\n"]


def test_a_hostile_version_commands_no_terminal() -> None:
    assert "\x1b" not in find("The length 9 is larger than the limits", vllm="\x1b[31m9")[2]


# -- show ------------------------------------------------------------------------------------------------------------


def test_a_message_is_shown_with_all_its_places() -> None:
    row_id = id_of("The length 9 is larger than the limits")
    code, text, problems = show(row_id[:6].upper())
    assert (code, problems) == (0, "")
    assert text.startswith(f"{row_id}  {LIMITS}\n")
    assert f"  reworded from {id_of('The length 9 is larger than the limit')}\n" in text
    assert "    line 7 from 0.2.0, 8 from 0.2.1\n" in text
    assert "lmcache/a.py:3 in check" in text


def test_a_message_as_data() -> None:
    row_id = id_of("The length 9 is larger than the limit")
    data = json.loads(show(row_id, style="jsonl")[1])
    assert (data["kind"], data["id"], data["message"]) == ("message", row_id, LIMIT)
    assert data["sites"][0]["history"] == {"0.1.0": [5]}
    assert (data["sites"][0]["until"], data["reworded"]["message"]) == ("0.1.0", LIMITS)


def test_an_unknown_id_is_not_found() -> None:
    code, text, problems = show("0000000000")
    assert (code, text) == (1, "")
    assert "No message has the id 0000000000." in problems


@pytest.mark.parametrize("row_id", ["", " ", "The length", "0x12", "12345678901", "\x1b[1m"])
def test_what_is_no_id_is_wrong_usage(row_id: str) -> None:
    with pytest.raises(UsageError, match="lmdiag catalog find"):
        show(row_id)


def test_the_beginning_of_several_ids_names_them(tmp_path: Path) -> None:
    rules = write(tmp_path / "own", {"own 1.0": [site(f"the word {number} is wrong") for number in range(40)]})
    ids = [json.loads(find(f"the word {number} is wrong", rules=(rules,), style="jsonl")[1])["id"] for number in range(40)]
    shared = next(digit for digit in "0123456789abcdef" if sum(row_id.startswith(digit) for row_id in ids) > 1)
    with pytest.raises(UsageError, match=rf"ids begin with {shared}: {shared}[0-9a-f]{{9}}, ") as caught:
        show(shared, rules=(rules,))
    assert str(caught.value).count(",") <= 8


def test_a_message_of_two_catalogues_is_shown_from_both(tmp_path: Path) -> None:
    rules = write(tmp_path / "own", {"vllm 9.9.9": [site(LIMITS, line=77)]})
    text = show(id_of("The length 9 is larger than the limits"), rules=(rules,))[1]
    assert text.index("model.py:77") < text.index("model.py:8 ")


# -- versions --------------------------------------------------------------------------------------------------------


def versions(rules: tuple[str, ...] = (), style: str = "text") -> list[str]:
    code, text, _ = run(lambda out, err: catalog_commands.versions(rules, style, out, err))
    assert code == 0
    return text.splitlines()


def test_the_releases_are_listed_oldest_first() -> None:
    assert [line.split() for line in versions()] == [["vllm", "0.1.0"], ["vllm", "0.2.0"], ["vllm", "0.2.1"], ["lmcache", "0.5.0"]]


LISTS = {
    "figures": ('{"vllm 0.1.0": {"sites": 1234, "origin": "a.whl"}}', "1,234 sites  a.whl"),
    "another shape": ('{"vllm 0.1.0": {"sites": "many"}}', "0.1.0"),
    "no entries": ('{"vllm 0.1.0": 5}', "0.1.0"),
    "a list": ("[1, 2]", "0.1.0"),
    "no JSON": ("{", "0.1.0"),
}


@pytest.mark.parametrize(("text", "end"), LISTS.values(), ids=LISTS)
def test_the_list_beside_the_catalogue_may_be_damaged(shipped: Path, text: str, end: str) -> None:
    (shipped / "catalog" / "releases.json").write_text(text, encoding="utf-8")
    assert versions()[0].endswith(end)
    assert json.loads(versions(style="jsonl")[0])["version"] == "0.1.0"


def test_several_catalogues_are_told_apart(shipped: Path, tmp_path: Path) -> None:
    rules = write(tmp_path / "own", {"own 1.0": []})
    heads = [line for line in versions((rules,)) if line.endswith(":")]
    assert heads == [f"{rules}/catalog/catalog.bin:", f"{shipped}/catalog/catalog.bin:"]
    assert json.loads(versions((rules,), "jsonl")[0])["catalog"] == f"{rules}/catalog/catalog.bin"


# -- diff ------------------------------------------------------------------------------------------------------------


def test_what_an_operator_may_meet_stands_first() -> None:
    lines = diff("0.1.0", "0.2.0").splitlines()
    assert lines[:2] == [
        "vllm 0.1.0 to 0.2.0: 1 reworded, 1 retyped, 1 new, 1 gone, 1 moved",
        "Left out: 1 change of assertions; --assertions lists them too",
    ]
    titles = [line for line in lines[2:] if line and not line.startswith(" ")]
    assert titles == ["Reworded: 1", "Raised as another type: 1", "New errors: 1", "Errors that are gone: 1", "Moved to another file or function: 1"]


def test_the_changes_say_what_was() -> None:
    text = diff("0.1.0", "0.2.0")
    assert f"  ValueError: {LIMITS}\n    was {id_of('The length 9 is larger than the limit')}: {LIMIT}\n    vllm/config/model.py:7 in check\n" in text
    assert "    was ValueError; is TypeError\n" in text
    assert "    was at vllm/config/model.py:10 in check\n    is at vllm/config/model.py:10 in other\n" in text


def test_assertions_are_listed_where_asked_for() -> None:
    text = diff("0.1.0", "0.2.0", assertions=True)
    assert "Left out" not in text
    assert "AssertionError: a tensor of " in text


@pytest.mark.parametrize("assertions", [False, True])
def test_the_changes_as_data(assertions: bool) -> None:
    head, *rows = map(json.loads, diff("v0.1.0", "0.2.0", style="jsonl", assertions=assertions).splitlines())
    assert head == {
        "kind": "diff", "project": "vllm", "old": "0.1.0", "new": "0.2.0", "path": "",
        "changes": len(rows), "assertions_left_out": 0 if assertions else 1,
    }  # fmt: skip
    assert [row["change"] for row in rows][:2] == ["reworded", "retyped"] if not assertions else True
    assert ("assert" in {site["how"] for row in rows for site in row["old"] + row["new"]}) is assertions


def test_a_path_limits_the_changes() -> None:
    text = diff("0.1.0", "0.2.0", path="./vllm/v1/")
    assert text.startswith("vllm 0.1.0 to 0.2.0, below vllm/v1/: 0 reworded, 0 retyped, 1 new, 0 gone, 0 moved\n")
    assert "vllm/config" not in text


def test_a_site_below_the_path_is_the_one_that_is_shown(tmp_path: Path) -> None:
    both = [site("two places say this", file="vllm/a.py"), site("two places say this", file="vllm/z.py")]
    rules = write(tmp_path / "own", {"vllm 3.0": [], "vllm 3.1": both})
    assert "    vllm/z.py:10 in check and 1 more\n" in diff("3.0", "3.1", path="vllm/z", rules=(rules,))


def test_no_change_is_no_failure() -> None:
    assert diff("0.2.0", "0.2.1", path="vllm/config/", project="VLLM").startswith("vllm 0.2.0 to 0.2.1")


REFUSED = {
    "the newer first": (("0.2.0", "0.1.0"), "the older one comes first: lmdiag catalog diff 0.1.0 0.2.0"),
    "the same twice": (("0.2.0", "v0.2.0"), "compared with itself"),
    "an unknown old one": (("0.3.0", "0.2.0"), "vllm 0.3.0 is not in the catalogue, which has 0.1.0 to 0.2.1; did you mean"),
    "an unknown new one": (("0.2.0", "banana"), "`lmdiag catalog versions` lists what there is"),
    "a part of a version": (("0.1.0", "0.2"), r"did you mean 0\.2\.0, 0\.2\.1\?"),
    "an unknown project": (("0.1.0", "0.2.0", "vlm"), "no catalogue has the project 'vlm', only lmcache, vllm"),
    "an unknown path": (("0.1.0", "0.2.0", "vllm", "vlm/"), "raises anything below vlm/"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compared_is_refused(arguments: tuple[str, ...], why: str) -> None:
    old, new, project, path = (*arguments, "vllm", "")[:4] if len(arguments) == 2 else (*arguments, "")[:4]
    with pytest.raises(UsageError, match=why):
        diff(old, new, project=project, path=path)


def test_the_catalogue_that_has_both_releases_is_compared(tmp_path: Path) -> None:
    rules = write(tmp_path / "own", {"vllm 0.2.0": [], "vllm 9.0": []})
    assert "1 reworded" in diff("0.1.0", "0.2.0", rules=(rules,))
    with pytest.raises(UsageError, match=r"no catalogue has both vllm 0\.1\.0 and 9\.0"):
        diff("0.1.0", "9.0", rules=(rules,))


# -- catalogues that cannot be read ----------------------------------------------------------------------------------


def test_a_damaged_own_catalogue_is_told_and_the_shipped_one_answers(tmp_path: Path) -> None:
    rules = write(tmp_path / "own", {"own 1.0": []})
    Path(rules, "catalog", "catalog.bin").write_bytes(b"rubbish\n")
    code, _, problems = find("The length 9 is larger than the limits", rules=(rules,))
    assert (code, problems.count("\n")) == (0, 1)
    assert problems.startswith(f"lmdiag: {rules}/catalog/catalog.bin: ")


def test_without_any_catalogue_there_is_no_answer(shipped: Path) -> None:
    (shipped / "catalog" / "catalog.bin").unlink()
    with pytest.raises(CatalogError, match="no catalogue can be read"):
        find("The length 9 is larger than the limits")


def test_a_directory_that_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        find("x", rules=(str(tmp_path / "nope"),))


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_lines_of_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = _Terminal()
    catalog_diff_command.diff("0.1.0", "0.2.0", "vllm", "", (), "text", out, io.StringIO())
    assert not [line for line in out.getvalue().splitlines() if len(line) > 40 and "/" not in line]
    assert "  ValueError: The length {n}\n" in out.getvalue()
    assert "\n    is larger than the limits\n" in out.getvalue()
