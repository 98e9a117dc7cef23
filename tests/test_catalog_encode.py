from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from catalog_samples import catalog_of, row_of, rows_in, rows_of_releases, site
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.catalog.decode import rows_of
from lmdiag.catalog.encode import encode
from lmdiag.catalog.rows import Rows, key_of
from lmdiag.catalog.sites import Site
from lmdiag.catalog.texts import is_opaque
from lmdiag.match.catalog import Catalog
from lmdiag.match.catalog_format import OPAQUE

RELEASES = (
    "vllm 0.9.0", "vllm 0.9.1rc1", "vllm 0.9.1", "vllm 0.10.0.post1", "vllm 0.10.0.1", "vllm 0.11.0",
    "lmcache 0.3.0", "lmcache 0.3.1", "lmcache local",
)  # fmt: skip
TEXTS = (
    "value {a} is bad", "value {b} is bad", "value {a} is not good", "plain words", "{x}", "first line\n then {y}",
    "é {{}} 100% of {z}", "value\n{a} is  bad",
)  # fmt: skip
TYPES = (("ValueError", "ValueError"), ("VLLMValidationError", "ValueError"), ("VLLMValidationError", "VLLMError"), ("", "Exception"))  # fmt: skip
SITES = st.builds(
    lambda text, line, file, name, kind, how, validator: site(
        text, line=line, file=f"{file}.py", name=name, type=kind[0], family=kind[1], how=how, validator=validator
    ),
    st.sampled_from(TEXTS),
    st.integers(1, 60),
    st.sampled_from(["vllm/a", "vllm/b"]),
    st.sampled_from(["f", "C.f", "<module>"]),
    st.sampled_from(TYPES),
    st.sampled_from(["raise", "raise", "assert", "built", "again"]),
    st.booleans(),
)
HISTORIES = st.dictionaries(st.sampled_from(RELEASES), st.lists(SITES, max_size=6), min_size=1)
History = dict[str, list[Site]]


def expected(history: History) -> dict[tuple[object, ...], tuple[set[int], tuple[str, str]]]:
    """(key, project, release, place) -> lines and the first of the types, said without the code that is tested."""
    found: dict[tuple[object, ...], tuple[set[int], tuple[str, str]]] = {}
    for release, sites in history.items():
        project, _, version = release.partition(" ")
        for item in sites:
            for text in item.texts:
                if is_opaque(text) and item.how in ("assert", "again"):
                    continue
                key = f"{OPAQUE}{project}:{item.file}:{item.qualname}" if is_opaque(text) else key_of(text)
                place = (key, project, version, item.file, item.qualname, item.how, item.validator)
                lines, kind = found.setdefault(place, (set(), (item.type, item.family)))
                found[place] = (lines | {item.line}, min(kind, (item.type, item.family)))
    return found


def read_back(catalog: Catalog) -> Iterator[tuple[tuple[object, ...], tuple[set[int], tuple[str, str]]]]:
    for row in rows_in(catalog):
        for known in row.sites:
            for number, version in enumerate(known.releases):
                assert bool(known.lines_in(number)) == known.is_in(number)
                if lines := known.lines_in(number):
                    assert list(lines) == sorted(lines)
                    assert known.first <= number <= known.last
                    place = (row.key, known.project, version, known.file, known.qualname, known.how, known.validator)
                    yield place, (set(lines), known.type_in(number))


@given(HISTORIES)
@settings(max_examples=150, deadline=None)
def test_every_site_comes_back_with_its_lines_and_type_in_every_release(history: History) -> None:
    assert dict(read_back(catalog_of(history))) == expected(history)


@given(HISTORIES, st.data())
@settings(max_examples=100, deadline=None)
def test_the_same_releases_give_the_same_bytes_in_any_order_and_in_any_number_of_steps(history: History, data: st.DataObject) -> None:
    whole = encode(rows_of_releases(history))
    rows = Rows()
    for release in data.draw(st.permutations(sorted(history))):
        rows_of_releases({release: data.draw(st.permutations(history[release]))}, rows)
        if data.draw(st.booleans()):
            rows = rows_of(Catalog(encode(rows), "x"))
    assert encode(rows) == whole
    assert encode(rows_of(Catalog(whole, "x"))) == whole


@given(HISTORIES, st.sampled_from(RELEASES), st.lists(SITES, max_size=6))
@settings(max_examples=100, deadline=None)
def test_a_release_can_be_replaced_by_itself_and_taken_out_again(history: History, release: str, sites: list[Site]) -> None:
    history.pop(release, None)
    project, _, version = release.partition(" ")
    rows = rows_of_releases(history)
    rows.versions.setdefault(project, set())
    before = encode(rows)
    rows.add_release(project, version, sites)
    with_it = encode(rows)
    rows.add_release(project, version, sites)
    assert encode(rows) == with_it
    again = rows_of(Catalog(with_it, "x"))
    again.add_release(project, version, sites)
    assert encode(again) == with_it
    rows.drop_release(project, version)
    assert encode(rows) == before


def test_a_function_with_more_and_fewer_lines_over_the_releases() -> None:
    lines = [(5,), (5, 9), (6, 10, 30), (30,), (), (31, 40), (31,)]
    history = {f"vllm 0.{number}.0": [site("abc", line=line) for line in found] for number, found in enumerate(lines)}
    (row,) = rows_in(catalog_of(history))
    (known,) = row.sites
    assert [known.lines_in(number) for number in range(len(lines))] == lines
    assert (known.first, known.last) == (0, 6)
    assert [known.is_in(number) for number in range(len(lines))] == [bool(found) for found in lines]


def test_a_type_that_leaves_the_family_of_value_errors() -> None:
    kinds = [("ValueError", "ValueError"), ("VLLMValidationError", "ValueError"), ("VLLMValidationError", "VLLMError")]
    history = {f"vllm 0.{number}.0": [site("abc", type=kind, family=family)] for number, (kind, family) in enumerate(kinds)}
    (known,) = row_of(catalog_of(history), "abc").sites
    assert [known.type_in(number) for number in range(3)] == kinds


def test_releases_are_in_their_order() -> None:
    versions = catalog_of({release: [] for release in reversed(RELEASES)}).versions
    assert versions["vllm"] == ["0.9.0", "0.9.1rc1", "0.9.1", "0.10.0.1", "0.10.0.post1", "0.11.0"]
    assert versions["lmcache"] == ["local", "0.3.0", "0.3.1"]


def test_the_site_that_is_there_still_stands_first_and_vllm_before_lmcache() -> None:
    history = {
        "lmcache 0.3.0": [site("abc", file="lmcache/a.py")],
        "vllm 0.1.0": [site("abc", file="vllm/a.py")],
        "vllm 0.2.0": [site("abc", file="vllm/z.py")],
    }
    assert [known.file for known in row_of(catalog_of(history), "abc").sites] == ["vllm/z.py", "vllm/a.py", "lmcache/a.py"]


def test_an_empty_catalogue_can_be_read() -> None:
    catalog = Catalog(encode(Rows()), "x")
    assert (list(catalog.texts), catalog.filed_under("word"), catalog.renamed, catalog.versions) == ([], [], {}, {})
    assert list(catalog.rows_of_file("vllm/a.py")) == []
    assert encode(rows_of(catalog)) == encode(Rows())


_PROGRAM = """
import hashlib
from catalog_samples import rows_of_releases, site
from lmdiag.catalog.encode import encode
versions = ["vllm local", "vllm dev", "vllm 0.9.0.1", "vllm 0.9.0.post1", "lmcache main", "lmcache local"]
history = {version: [site("abc {a}", line=n + 1), site(f"only {version}")] for n, version in enumerate(versions)}
print(hashlib.sha256(encode(rows_of_releases(history))).hexdigest())
"""


def test_the_bytes_do_not_depend_on_the_interpreter_run() -> None:
    here = Path(__file__).parent
    runs = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM], env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": f"{here}:{here.parent}"},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in range(3)
    ]  # fmt: skip
    assert len(set(runs)) == 1
