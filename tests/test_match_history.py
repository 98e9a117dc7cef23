from __future__ import annotations

from catalog_samples import MODEL, Releases, at, catalog_of, find, index_of, row_of, site

from lmdiag.match.catalog import Catalog
from lmdiag.match.history import contradiction, link, newest, releases_by_line, rewording, source_line, span, spans
from lmdiag.model import SourceLine

TEXT = "The length {n} is larger than the limit of it"
RAW = "https://github.com/vllm-project/vllm/blob"


def releases(*lines: int | None, text: str = TEXT, how: str = "raise") -> Releases:
    """Releases 0.9.0, 0.10.0, … with the message on these lines; None: without it."""
    return {f"vllm 0.{9 + number}.0": [site(text, line=line, how=how)] if line else [] for number, line in enumerate(lines)}


def test_a_link_is_to_a_line_of_a_release() -> None:
    assert link("vllm", "0.9.0", MODEL, 5) == f"{RAW}/v0.9.0/{MODEL}#L5"
    assert link("lmcache", "0.3.0", "lmcache/a.py", 1) == "https://github.com/LMCache/LMCache/blob/v0.3.0/lmcache/a.py#L1"
    assert link("torch", "2.0.0", "torch/a.py", 1) is None
    assert link("vllm", None, MODEL, 5) is None
    assert link("vllm", "0.9.0", MODEL, None) is None


def test_the_span_of_a_message() -> None:
    assert span(row_of(catalog_of(releases(5, 5)), TEXT), "vllm") == ("0.9.0", None)
    assert span(row_of(catalog_of(releases(None, 5, None, 6, None)), TEXT), "vllm") == ("0.10.0", "0.12.0")


def test_the_span_is_of_all_places_of_one_project() -> None:
    history = {
        "vllm 0.9.0": [site(TEXT)],
        "vllm 0.10.0": [site(TEXT, file="vllm/b.py")],
        "vllm 0.11.0": [],
        "lmcache 0.3.0": [],
        "lmcache 0.3.1": [site(TEXT, file="lmcache/a.py")],
    }
    row = row_of(catalog_of(history), TEXT)
    assert span(row, "vllm") == ("0.9.0", "0.10.0")
    assert span(row, "lmcache") == ("0.3.1", None)


def test_where_a_site_is_in_a_release() -> None:
    (known,) = row_of(catalog_of(releases(5, 8)), TEXT).sites
    assert source_line(known, 0) == SourceLine("0.9.0", MODEL, 5, "check", f"{RAW}/v0.9.0/{MODEL}#L5")


def test_now_is_the_newest_release_that_has_the_message() -> None:
    row = row_of(catalog_of(releases(5, 8, None)), TEXT)
    assert newest(row, row.sites[0]).version == "0.10.0"
    assert newest(row, row.sites[0]).line == 8


def test_now_stays_in_the_function_if_it_is_still_there_else_in_the_file() -> None:
    places = [site(TEXT, name="check", file="vllm/a.py"), site(TEXT, name="other", file="vllm/a.py"), site(TEXT, name="third", file="vllm/z.py")]
    row = row_of(catalog_of({"vllm 0.9.0": [*places, site(TEXT, name="gone", file="vllm/a.py")], "vllm 0.10.0": places}), TEXT)
    now = {known.function: newest(row, known) for known in row.sites}
    assert {name: now[name].function for name in ("check", "other", "third")} == {"check": "check", "other": "other", "third": "third"}
    assert now["gone"].file == "vllm/a.py"


def test_now_is_of_the_same_project() -> None:
    row = row_of(catalog_of({"vllm 0.9.0": [site(TEXT)], "lmcache 0.3.0": [site(TEXT, file="lmcache/a.py")]}), TEXT)
    assert [newest(row, known).file for known in row.sites] == [MODEL, "lmcache/a.py"]


# -- rewordings ------------------------------------------------------------------------------------------------------------

WORDS = [TEXT, "The length {n} is larger than the limit of this", "The length {n} is larger than the limit of this model"]


def test_a_chain_of_rewordings_leads_to_the_last_words() -> None:
    catalog = catalog_of({f"vllm 0.{9 + number}.0": [site(text)] for number, text in enumerate(WORDS)})
    last = row_of(catalog, WORDS[2])
    for text in WORDS[:2]:
        found = rewording(catalog, row_of(catalog, text), "vllm")
        assert found is not None
        assert (found.version, found.id, found.message) == ("0.11.0", last.id, WORDS[2])
    assert rewording(catalog, last, "vllm") is None


def test_a_message_that_is_gone_for_good_was_not_reworded() -> None:
    catalog = catalog_of(releases(5, None))
    assert rewording(catalog, row_of(catalog, TEXT), "vllm") is None


def test_the_rewordings_of_another_project_are_not_its_own() -> None:
    history = {
        "vllm 0.9.0": [site(WORDS[0])],
        "vllm 0.10.0": [site(WORDS[1])],
        "lmcache 0.3.0": [site(WORDS[1], file="lmcache/a.py")],
        "lmcache 0.3.1": [site(WORDS[2], file="lmcache/a.py")],
    }
    catalog = catalog_of(history)
    found = rewording(catalog, row_of(catalog, WORDS[0]), "vllm")
    assert found is not None
    assert found.message == WORDS[1]
    other = rewording(catalog, row_of(catalog, WORDS[1]), "lmcache")
    assert other is not None
    assert other.message == WORDS[2]


def test_projects_that_reword_in_opposite_directions() -> None:
    history = {
        "vllm 0.9.0": [site(WORDS[0])],
        "vllm 0.10.0": [site(WORDS[1])],
        "lmcache 0.3.0": [site(WORDS[1], file="lmcache/a.py")],
        "lmcache 0.3.1": [site(WORDS[0], file="lmcache/a.py")],
    }
    catalog = catalog_of(history)
    for old, new, project in ((0, 1, "vllm"), (1, 0, "lmcache")):
        found = rewording(catalog, row_of(catalog, WORDS[old]), project)
        assert found is not None
        assert found.message == WORDS[new]


def test_a_damaged_list_of_rewordings_tells_none() -> None:
    catalog = catalog_of({f"vllm 0.{9 + number}.0": [site(text)] for number, text in enumerate(WORDS)})
    data = bytearray(catalog._data)
    start, length = catalog._parts["renamed"]
    place = catalog._start + start
    data[place : place + length] = bytes(length)
    broken = Catalog(bytes(data), "x")
    assert rewording(broken, row_of(broken, TEXT), "vllm") is None


# -- which releases ----------------------------------------------------------------------------------------------------------


def test_the_line_tells_the_releases_that_can_have_run() -> None:
    index = index_of(releases(5, 5, 8, 5))
    match = find(index, TEXT.replace("{n}", "7"))
    assert releases_by_line(match, at(5)) == ["0.9.0", "0.10.0", "0.12.0"]
    assert releases_by_line(match, at(8)) == ["0.11.0"]
    assert releases_by_line(match, at(9)) == releases_by_line(match, at(5, "other")) == []
    assert spans(releases_by_line(match, at(5)), match.site.releases) == "0.9.0 to 0.10.0, 0.12.0"
    assert spans(["0.11.0"], match.site.releases) == "0.11.0"


def test_the_line_of_an_assertion_tells_no_release() -> None:
    match = find(index_of(releases(5, 8, how="assert")), TEXT.replace("{n}", "7"))
    assert releases_by_line(match, at(5)) == []


# -- contradictions ----------------------------------------------------------------------------------------------------------


def contradicted(history: Releases, version: str | None, line: int | None = None) -> str | None:
    index = index_of(history)
    frame = at(line) if line else None
    match = index.find("ValueError", TEXT.replace("{n}", "7"), frame, {"vllm": version})
    assert match is not None
    return contradiction(match, frame, version)


def test_a_version_that_has_the_message_on_this_line_contradicts_nothing() -> None:
    history = releases(5, 8, 8)
    assert contradicted(history, "0.9.0", 5) is None
    assert contradicted(history, "0.10.0+cu129", 8) is None
    assert contradicted(history, "0.10.0") is None
    assert contradicted(history, None, 99) is None


def test_a_version_without_the_message() -> None:
    history = releases(None, 5, 5, None)
    for version in ("0.9.0", "0.12.0"):
        told = contradicted(history, version, 5)
        assert told is not None
        assert f"vllm {version}" in told
        assert "only in 0.10.0 to 0.11.0" in told
    assert "0.11.0" in (contradicted(releases(None, None, 5), "0.9.0") or "")


def test_a_line_of_other_releases() -> None:
    history = releases(5, 5, 8, 5, 9)
    told = contradicted(history, "0.11.0", 5)
    assert told is not None
    assert "vllm 0.11.0" in told
    assert f"line 5 of {MODEL} is that of 0.9.0 to 0.10.0, 0.12.0:" in told
    assert "is in no release" in (contradicted(history, "0.11.0", 77) or "")


def test_a_line_that_many_releases_had_names_some() -> None:
    history = releases(*(5 if number % 2 else 8 for number in range(14)))
    told = contradicted(history, "0.9.0", 5)
    assert told is not None
    assert "and others" in told
    assert told.count("0.1") + told.count("0.2") == 4


def test_any_line_of_the_function_will_do() -> None:
    history = {"vllm 0.9.0": [site(TEXT, line=5), site(TEXT, line=30), site(TEXT, line=41, name="Other.check")]}
    for line in (5, 30, 41):
        assert contradicted(history, "0.9.0", line) is None
    assert contradicted(history, "0.9.0", 42) is not None


def test_a_frame_elsewhere_says_nothing_about_the_line() -> None:
    index = index_of(releases(5, 5))
    frame = at(99, "validator", "vllm/entrypoints/api.py")
    assert contradiction(find(index, TEXT.replace("{n}", "7"), frame, vllm="0.9.0"), frame, "0.9.0") is None


def test_builds_between_releases_are_held_to_no_line() -> None:
    history = releases(5, 8, 12)
    for version in ("0.9.1.dev12+gabc", "0.10.0rc1", "0.10.1", "0.99.0", "main"):
        assert contradicted(history, version, 77) is None


def test_builds_long_before_the_first_release_with_the_message() -> None:
    history = releases(None, None, None, 5)
    assert "0.12.0 and later" in (contradicted(history, "0.9.1.dev3") or "")
    assert contradicted(history, "0.11.1.dev3") is None
    assert contradicted(history, "0.1.dev1+gabc1234") is None
    assert contradicted(history, "0.0.0") is None


def test_a_build_of_the_next_minor_release_has_what_that_has() -> None:
    """However many patch releases of the one before came out in between."""
    names = ("0.14.0", "0.14.1", "0.14.2", "0.15.0")
    history = {f"vllm {name}": [site(TEXT)] if name == "0.15.0" else [] for name in names}
    assert contradicted(history, "0.14.0rc2.dev321+gabc") is None
    assert contradicted(history, "0.13.0rc1.dev4+gabc") is not None


def test_lines_of_assertions_are_not_compared() -> None:
    for how in ("assert", "built"):
        assert contradicted(releases(5, 8, how=how), "0.9.0", 8) is None
        assert contradicted(releases(5, None, how=how), "0.10.0", 5) is not None
