from __future__ import annotations

import pytest
from catalog_samples import rows_of_releases, site

from lmdiag.catalog.aliases import rewordings
from lmdiag.catalog.sites import Site
from lmdiag.match.catalog_format import HOLE
from lmdiag.match.versions import version_key

OLD = "The model {model} does not support sleep mode"
NEW = "The model {model} does not support the sleep mode."


def found(releases: dict[str, list[Site]]) -> list[tuple[str, str]]:
    rows = rows_of_releases(releases)
    versions = {project: sorted(known, key=version_key) for project, known in rows.versions.items()}
    return [(old.replace(HOLE, "_"), new.replace(HOLE, "_")) for old, new in rewordings(rows, versions)]


def between(*sites: Site) -> list[tuple[str, str]]:
    """From the first site in one release to the others in the next."""
    return found({"vllm 0.1.0": [sites[0]], "vllm 0.2.0": list(sites[1:])})


def test_a_message_that_is_gone_is_followed_to_its_new_words() -> None:
    assert between(site(OLD), site(NEW)) == [
        ("The model _ does not support sleep mode", "The model _ does not support the sleep mode.")
    ]


NONE = {
    "too little alike": (site(OLD), site("The quantization {q} needs a GPU of another kind")),
    "another file and function": (site(OLD), site(NEW, file="vllm/b.py", name="other")),
    "a method that every class has": (
        site(OLD, file="vllm/a.py", name="A.__init__"),
        site(NEW, file="vllm/b.py", name="B.__init__"),
    ),
    "a file that every package has": (
        site(OLD, file="vllm/a/__init__.py", name="f"),
        site(NEW, file="vllm/b/__init__.py", name="g"),
    ),
    "it is still there": (site(OLD), site(NEW), site(OLD)),
    "no words": (site("{error}"), site("{error}", name="ModelConfig.check_it")),
}


@pytest.mark.parametrize("sites", NONE.values(), ids=NONE)
def test_other_messages_are_not_rewordings(sites: tuple[Site, ...]) -> None:
    assert between(*sites) == []


@pytest.mark.parametrize(
    "successor",
    [site(NEW, file="vllm/config/moved/model.py", name="g"), site(NEW, file="vllm/b.py", name="Other.check")],
    ids=["same file name", "same function name"],
)
def test_file_and_function_may_change_but_not_both(successor: Site) -> None:
    assert len(between(site(OLD), successor)) == 1


def test_the_most_alike_are_paired_and_each_once() -> None:
    exact, near = "The model {model} does not support sleep mode.", "The models {a} do not support the sleep mode yet"
    assert between(site(OLD), site(near), site(exact)) == [
        ("The model _ does not support sleep mode", "The model _ does not support sleep mode.")
    ]
    pairs = found({"vllm 0.1.0": [site(OLD), site("The model {m} did not support sleep")], "vllm 0.2.0": [site(exact)]})
    assert pairs == [("The model _ does not support sleep mode", "The model _ does not support sleep mode.")]


def test_only_the_next_release_can_hold_the_new_words() -> None:
    assert found({"vllm 0.1.0": [site(OLD)], "vllm 0.2.0": [], "vllm 0.3.0": [site(NEW)]}) == []


def test_a_message_that_comes_back_was_not_reworded() -> None:
    assert found({"vllm 0.1.0": [site(OLD)], "vllm 0.2.0": [site(NEW)], "vllm 0.3.0": [site(OLD), site(NEW)]}) == []


def test_releases_of_other_projects_do_not_count() -> None:
    assert found({"vllm 0.1.0": [site(OLD)], "vllm 0.2.0": [], "lmcache 0.3.0": [site(NEW)]}) == []
    same = found({"lmcache 0.3.0": [site(OLD)], "lmcache 0.3.1": [site(NEW)], "vllm 0.1.0": [site(OLD)]})
    assert len(same) == 1


def test_a_chain_of_rewordings() -> None:
    words = [OLD, NEW, "The model {model} does not support the sleep mode here."]
    pairs = found({f"vllm 0.{number}.0": [site(text)] for number, text in enumerate(words)})
    assert [old for old, _ in pairs] == sorted(text.replace("{model}", "_") for text in words[:2])
