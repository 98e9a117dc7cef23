from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from catalog_samples import MODEL, catalog_of, read_all, row_of, rows_in, rows_of_releases, site
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.catalog.encode import encode
from lmdiag.errors import CatalogError
from lmdiag.match.catalog import Catalog, read_catalog
from lmdiag.match.catalog_format import FORMAT
from lmdiag.match.known_sites import key_id

HISTORY = {
    "vllm 0.9.0": [
        site("value {a} is bad", line=10),
        site("{error}", name="wrap", line=44),
        site("set {{x}} to {y}\n  or {} z"),
    ],
    "vllm 0.10.0": [site("value {a} is bad", line=12), site("value {a} is very bad", file="vllm/b.py")],
    "lmcache 0.3.0": [site("value {other} is bad", file="lmcache/c.py", how="assert", validator=True)],
}
DATA = encode(rows_of_releases(HISTORY))


def test_a_row_tells_where_its_message_is_raised() -> None:
    row = row_of(Catalog(DATA, "x"), "value {a} is bad")
    mine, other = row.sites
    assert (mine.project, mine.file, mine.qualname, mine.function) == ("vllm", MODEL, "ModelConfig.check", "check")
    assert (mine.how, mine.validator, list(mine.releases)) == ("raise", False, ["0.9.0", "0.10.0"])
    assert [mine.lines_in(number) for number in range(3)] == [(10,), (12,), ()]
    assert (other.project, other.how, other.validator) == ("lmcache", "assert", True)
    assert row.names == ("a",)


def test_a_template_is_that_of_a_card() -> None:
    templates = {row.template for row in rows_in(Catalog(DATA, "x"))}
    assert templates == {"value {a} is bad", "", "set {{x}} to {y} or {_} z", "value {a} is very bad"}


def test_ids_are_those_of_the_words_alone() -> None:
    one = row_of(catalog_of({"vllm 0.9.0": [site("abc {x} def")]}), "abc {x} def")
    two = row_of(
        catalog_of({"lmcache 0.3.0": [site("other"), site("abc\n {y}  def", file="lmcache/a.py")]}), "abc {y} def"
    )
    assert one.id == two.id == key_id("abc \0 def")
    assert len(one.id) == 10
    assert int(one.id, 16) >= 0


VERSIONS = {
    "0.10.0": 1, "v0.10.0": 1, "0.10.0+cu129": 1, "0.10.0-g3e11e108": 1, "0.10.0rc1": None, "0.10.1.dev4+g1": None,
    "0.11.0": None, "": None, None: None,
}  # fmt: skip


@pytest.mark.parametrize(("version", "number"), VERSIONS.items())
def test_the_release_that_a_build_is_of(version: str | None, number: int | None) -> None:
    assert Catalog(DATA, "x").release_of("vllm", version) == number


def test_a_project_that_it_does_not_know_has_no_release() -> None:
    assert Catalog(DATA, "x").release_of("torch", "0.10.0") is None


def test_the_rows_of_a_file_are_among_those_that_are_yielded() -> None:
    many = [site(f"message {n} of many", file=f"vllm/f{n % 7}.py", line=n + 1) for n in range(400)]
    catalog = catalog_of({"vllm 0.9.0": many})
    for file in range(7):
        found = [row.template for row in catalog.rows_of_file(f"vllm/f{file}.py")]
        assert {f"message {n} of many" for n in range(400) if n % 7 == file} <= set(found)
        assert len(found) < 400
    assert list(catalog.rows_of_file("vllm/none.py")) == []


@given(st.lists(st.integers(0, 1599), max_size=60))
def test_rows_stay_the_same_however_many_are_read(numbers: list[int]) -> None:
    for number in (*numbers, 0, *numbers):
        assert MANY.row(number).key == MANY.texts[number]
        assert MANY.row(number).number == number


MANY = catalog_of({"vllm 0.9.0": [site(f"m{n:04} of many", line=n + 1) for n in range(1600)]})


def test_more_rows_than_are_kept_unpacked() -> None:
    rows = rows_in(MANY)
    assert [row.sites[0].lines_in(0)[0] for row in rows] == list(range(1, 1601))
    assert rows_in(MANY) == rows


# -- files that are no catalogue, or half of one ---------------------------------------------------------------------------


@pytest.mark.parametrize("length", [*range(90), *range(90, len(DATA), 7), len(DATA) - 1])
def test_every_beginning_of_a_file_is_refused(length: int) -> None:
    with pytest.raises(CatalogError):
        Catalog(DATA[:length], "x")


def test_what_goes_on_behind_its_end_is_refused() -> None:
    with pytest.raises(CatalogError, match="damaged"):
        Catalog(DATA + b"x", "x")


@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_are_noticed_or_harmless(flips: list[tuple[int, int]]) -> None:
    data = bytearray(DATA)
    for index, bits in flips:
        data[index] ^= bits
    with contextlib.suppress(CatalogError):
        read_all(Catalog(bytes(data), "x"))


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"lmdiag-catalog 2 ", b"lmdiag-catalog 2 20\n", b"lmdiag-catalog 2 -3\n"]),
)
def test_any_bytes_are_refused(data: bytes, head: bytes) -> None:
    with pytest.raises(CatalogError):
        Catalog(head + data, "x")


def test_a_file_of_another_format_says_how_to_make_one() -> None:
    with pytest.raises(CatalogError, match="lmdiag catalog build"):
        Catalog(DATA.replace(b"lmdiag-catalog 2 ", b"lmdiag-catalog 3 ", 1), "x")


def damaged_blocks() -> bytes:
    data = bytearray(DATA)
    data[-3:] = b"abc"
    return bytes(data)


PARTS: dict[str, Callable[[Catalog], object]] = {
    "a row": lambda catalog: catalog.row(0),
    "a file": lambda catalog: list(catalog.rows_of_file(MODEL)),
}


@pytest.mark.parametrize("ask", PARTS.values(), ids=PARTS)
def test_a_damaged_part_is_noticed_when_it_is_asked_for(ask: Callable[[Catalog], object]) -> None:
    catalog = Catalog(damaged_blocks(), "here/catalog.bin")
    assert len(catalog.texts) == 4
    for _ in range(2):
        with pytest.raises(CatalogError, match=r"here/catalog.bin: the catalogue is damaged"):
            ask(catalog)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.bin")
    for path, why in (
        (tmp_path / "none.bin", "no catalogue can be read"),
        (tmp_path, "not a file"),
        (tmp_path / "pipe.bin", "not a file"),
    ):
        with pytest.raises(CatalogError, match=why):
            read_catalog(str(path))
    (tmp_path / "catalog.bin").write_bytes(DATA)
    assert len(read_catalog(str(tmp_path / "catalog.bin")).texts) == 4


def rebuilt(changed: dict[str, bytes], block: object = None, **head: object) -> bytes:
    """The catalogue with other parts, rows or head, and right checksums: damaged in what it says, not in its bytes."""
    line, _, rest = DATA.partition(b"\n")
    length = int(line.split()[2])
    known = json.loads(zlib.decompress(rest[:length]))
    body = rest[length:]
    for name, data in changed.items():
        packed = zlib.compress(data)
        if name == "texts":
            known["texts"] = [[len(body), len(packed)]]
        else:
            known["parts"][name] = [len(body), len(packed)]
        body += packed
    if block is not None:
        packed = zlib.compress(json.dumps(block).encode())
        known["blocks"] = [[len(body), len(packed)]]
        body += packed
    packed = zlib.compress(json.dumps(known | head).encode())
    return f"lmdiag-catalog {FORMAT} {len(packed)}\n".encode() + packed + body


def test_the_helper_rebuilds_what_was_there() -> None:
    read_all(Catalog(rebuilt({}), "x"))


_DEEP = zlib.compress(b"[" * 200_000)
WRONG = {
    "versions of a string": rebuilt({}, versions="x"),
    "a head without a bottom": b"lmdiag-catalog %d %d\n%b" % (FORMAT, len(_DEEP), _DEEP),
    "versions of numbers": rebuilt({}, versions={"vllm": 5}),
    "parts of a list": rebuilt({}, parts=[]),
    "blocks of nothing": rebuilt({}, blocks=None),
    "too few blocks": rebuilt({}, blocks=[]),
    "too few blocks of texts": rebuilt({}, texts=[]),
    "more rows than texts": rebuilt({}, rows=6),
    "a number of rows that is none": rebuilt({}, rows="x"),
    "no texts": rebuilt({"texts": b""}),
    "texts that are none": rebuilt({"texts": b"\xff\xfe"}),
    "words without numbers": rebuilt({"words": b"bad a b\nvalue x"}),
    "words of other rows": rebuilt({"words": b"bad 99\nvalue -1"}),
    "files without numbers": rebuilt({"files": f"{MODEL} x".encode()}),
    "files of other blocks": rebuilt({"files": f"{MODEL} 7".encode()}),
    "rewordings of one": rebuilt({"renamed": b"1"}),
    "rewordings of other rows": rebuilt({"renamed": b"1 99"}),
    "a part without an end": rebuilt({"texts": b"a" * (80 << 20)}),
    "rows of an object": rebuilt({}, block={}),
    "rows of numbers": rebuilt({}, block=[5] * 5),
    "rows without a site": rebuilt({}, block=[["a"]] * 5),
    "a site of no project": rebuilt({}, block=[["a", [9, "f", "q", "r", [[0, "E"]], [[0, 1]]]]] * 5),
    "a site without a file": rebuilt({}, block=[["a", [0, 5, "q", "r", [[0, "E"]], [[0, 1]]]]] * 5),
    "a site of another kind": rebuilt({}, block=[["a", [0, "f", "q", "z", [[0, "E"]], [[0, 1]]]]] * 5),
    "a site without a type": rebuilt({}, block=[["a", [0, "f", "q", "r", [], [[0, 1]]]]] * 5),
    "a run without a line": rebuilt({}, block=[["a", [0, "f", "q", "r", [[0, "E"]], [[0]]]]] * 5),
    "a run of words": rebuilt({}, block=[["a", [0, "f", "q", "r", [[0, "E"]], [["a", "b"]]]]] * 5),
    "a run beyond the releases": rebuilt({}, block=[["a", [0, "f", "q", "r", [[0, "E"]], [[0, 1, 0, 0, 0]]]]] * 5),
    "names of a number": rebuilt({}, block=[[5, [0, "f", "q", "r", [[0, "E"]], [[0, 1]]]]] * 5),
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_what_says_nothing_that_can_be_read_is_damage(data: bytes) -> None:
    def read() -> None:
        catalog = Catalog(data, "x")
        for word in ("bad", "value"):
            catalog.filed_under(word)
        read_all(catalog)

    with pytest.raises(CatalogError, match="damaged"):
        read()
