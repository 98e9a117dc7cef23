"""The catalogue in rules/catalog: what must hold of it after every build."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lmdiag.catalog.decode import rows_of
from lmdiag.catalog.encode import encode
from lmdiag.match.card_sites import card_template
from lmdiag.match.catalog import Catalog, read_catalog
from lmdiag.match.catalog_format import DIRECTORY, FILE, HOLE, LINE_BREAK, OPAQUE, RELEASES
from lmdiag.match.catalog_words import words_of
from lmdiag.match.history import contradiction, rewording, span
from lmdiag.match.known_sites import CatalogRow, KnownSite
from lmdiag.match.library import open_library
from lmdiag.match.pack import shipped_directory
from lmdiag.match.packages import Located
from lmdiag.match.raise_sites import CERTAIN, RaiseSites
from lmdiag.match.templates import Template, fold

HERE = Path(shipped_directory()) / DIRECTORY
_MAX_SIZE = 1_500_000
_MAX_OPAQUE = 0.01
"""Share of the ValueErrors without a word of their own: `raise ValueError(str(error))`."""


@cache
def catalog() -> Catalog:
    return read_catalog(str(HERE / FILE))


@cache
def sites() -> RaiseSites:
    return RaiseSites(catalog())


@cache
def listed() -> dict[str, dict[str, Any]]:
    return dict(json.loads((HERE / RELEASES).read_text(encoding="utf-8")))


def rows() -> Iterator[CatalogRow]:
    """All rows that have words."""
    return (row for row in map(catalog().row, range(len(catalog().texts))) if not row.key.startswith(OPAQUE))


# -- errors whose lines were looked up in the sources ----------------------------------------------------------------------------

RELEASE_LINES = {
    #                    layer-wise, naive serde, metadata, hybrid manager, role, replayssm
    "vllm 0.11.0":         (None, None, None, None, None, None),
    "vllm 0.11.1":         (498, 458, 144, 55, 372, None),
    "vllm 0.11.2":         (498, 458, 144, 55, 372, None),
    "vllm 0.12.0":         (498, 458, 144, 56, 403, None),
    "vllm 0.13.0":         (505, 465, 144, 56, 403, None),
    "vllm 0.14.1":         (508, 468, 134, 65, 412, None),
    "vllm 0.17.1":         (508, 468, 134, 64, 420, None),
    "vllm 0.18.1":         (508, 468, 134, 71, 479, None),
    "vllm 0.20.2":         (508, 468, 134, 77, 521, None),
    "vllm 0.22.1":         (508, 468, 134, 78, 522, None),
    "vllm 0.23.0":         (507, 467, 134, 78, 522, None),
    "vllm 0.26.0":         (508, 467, 134, 78, 522, None),
    "vllm 0.27.1":         (508, 467, 134, 78, 522, 2362),
    "vllm 0.30.0":         (508, 467, None, 78, 522, 3275),
    "vllm 0.31.0":         (510, 469, None, 78, 518, 3511),
    "vllm 0.33.0":         (510, 469, None, 78, 518, 3549),
    "lmcache 0.3.0":       (188, 151, None, None, None, None),
    "lmcache 0.3.3":       (179, 148, None, None, None, None),
    "lmcache 0.3.4":       (461, 424, None, None, None, None),
    "lmcache 0.3.9.post2": (515, 481, None, None, None, None),
    "lmcache 0.3.12":      (None, 517, None, None, None, None),
    "lmcache 0.4.2":       (None, 416, None, None, None, None),
    "lmcache 0.4.4":       (None, 393, None, 71, 500, None),
    "lmcache 0.5.6":       (None, 561, None, None, 789, None),
}  # fmt: skip
MESSAGES = (
    ("layerwise MLA connector is not supported yet", "ValueError"),
    ("MLA only works with naive serde mode..", "ValueError"),
    (
        "Either vllm_config must be provided, or all of model_config, parallel_config, and cache_config must be provided.",
        "ValueError",
    ),
    ("LMCacheMPConnector only works without hybrid kv cache manager.", "RuntimeError"),
    ("Unknown KVConnectorRole: KVConnectorRole.OTHER", "ValueError"),
    ("--use-replayssm is incompatible with KV connectors (P/D disaggregation, KV cache offload)", "ValueError"),
)
FILES = {
    "vllm_v1_adapter.py", "vllm_adapter.py", "manager.py", "utils.py", "vllm.py",
    "lmcache_mp_connector.py", "lmcache_mp_connector_0180.py",
}  # fmt: skip


def known(message: str, kind: str, project: str, version: str) -> tuple[CatalogRow, list[KnownSite]]:
    """The row of a message, and its sites in a release."""
    match = sites().find(kind, message, None, {project: version}, truncated=True)
    assert match is not None
    release = catalog().release_of(project, version)
    assert release is not None
    return match.row, [item for item in match.row.sites if item.project == project and item.is_in(release)]


@pytest.mark.parametrize(("release", "wanted"), RELEASE_LINES.items())
def test_the_lines_of_known_errors(release: str, wanted: tuple[int | None, ...]) -> None:
    project, _, version = release.partition(" ")
    number = catalog().release_of(project, version)
    assert number is not None
    for (message, kind), line in zip(MESSAGES, wanted, strict=True):
        _, found = known(message, kind, project, version)
        assert [item.lines_in(number) for item in found] == ([(line,)] if line else []), message
        assert {item.type_in(number) for item in found} <= {(kind, kind)}
        assert {item.file.rpartition("/")[2] for item in found} <= FILES
        assert all(item.file.startswith(f"{project}/") for item in found)


@pytest.mark.parametrize(("release", "wanted"), RELEASE_LINES.items())
def test_a_frame_on_the_line_of_a_known_error_contradicts_nothing(release: str, wanted: tuple[int | None, ...]) -> None:
    project, _, version = release.partition(" ")
    for (message, kind), line in zip(MESSAGES, wanted, strict=True):
        if line is None:
            continue
        (site,) = known(message, kind, project, version)[1]
        frame = Located(project, site.file, site.function, line)
        match = sites().find(kind, message, frame, {project: version}, truncated=True)
        assert match is not None
        assert match.site == site
        assert contradiction(match, frame, version) is None
        moved = frame._replace(line=line + 1)
        assert f"line {line + 1}" in (contradiction(match, moved, version) or "")


def test_the_releases_that_have_a_known_error() -> None:
    row, _ = known(*MESSAGES[2], "vllm", "0.26.0")
    assert span(row, "vllm") == ("0.11.1", "0.29.0")
    row, _ = known(*MESSAGES[0], "lmcache", "0.3.0")
    assert span(row, "lmcache") == ("0.3.0", "0.3.9.post2")
    assert span(row, "vllm")[0] == "0.11.1"


def test_a_validation_error_that_is_no_value_error_any_more() -> None:
    """VLLMValidationError left the family of ValueErrors in 0.27."""
    versions = catalog().versions["vllm"]
    for version, family in (("0.26.0", "ValueError"), ("0.27.1", "VLLMError")):
        number = versions.index(version)
        found = {
            item.type_in(number)[1]
            for row in rows()
            for item in row.sites
            if item.project == "vllm" and item.is_in(number) and item.type_in(number)[0] == "VLLMValidationError"
        }
        assert found == {family}


# -- the files -------------------------------------------------------------------------------------------------------------------


def test_it_is_small() -> None:
    assert (HERE / FILE).stat().st_size < _MAX_SIZE


def test_it_is_listed_release_by_release() -> None:
    names = [f"{project} {version}" for project, versions in catalog().versions.items() for version in versions]
    assert set(listed()) == set(names)
    assert set(catalog().versions) == {"vllm", "lmcache"}


def test_every_release_was_read_whole() -> None:
    for name, entry in listed().items():
        assert entry["value_errors"] == entry["value_errors_in_source"], name
        assert entry["opaque_value_errors"] <= max(1, _MAX_OPAQUE * entry["value_errors"]), name
        assert entry["unparsable"] == [], name
        assert entry["modules"] > 0, name
        assert len(entry["sha256"]) == 64, name


def test_every_release_has_sites_in_it() -> None:
    for project, versions in catalog().versions.items():
        found = {number for row in rows() for item in row.sites if item.project == project for number in range(item.first, item.last + 1)}
        assert found == set(range(len(versions)))


def test_it_is_what_its_rows_encode_to() -> None:
    assert encode(rows_of(catalog())) == (HERE / FILE).read_bytes()


def test_its_parts_fit_together() -> None:
    texts = catalog().texts
    assert len(set(texts)) == len(texts)
    ids = {row.id for row in map(catalog().row, range(len(texts)))}
    assert len(ids) == len(texts)
    for number, key in enumerate(texts):
        words = {*(word for part in words_of(key) for word in part), ""}
        assert [number in catalog().filed_under(word) for word in words].count(True) == (not key.startswith(OPAQUE)), key
    for row in map(catalog().row, range(len(texts))):
        assert len(row.names) == row.key.count(HOLE)
        for item in row.sites:
            assert all(line > 0 for number in range(item.first, item.last + 1) for line in item.lines_in(number)), row.key


def test_every_message_makes_a_template_for_a_card() -> None:
    for row in rows():
        assert len(Template(card_template(row)).holes) == row.key.count(HOLE)


def test_rewordings_end() -> None:
    for old in catalog().renamed:
        row = catalog().row(old)
        for project in {item.project for item in row.sites}:
            found = rewording(catalog(), row, project)
            assert found is None or found.id != row.id


# -- every message finds its row -------------------------------------------------------------------------------------------------

FILLS = (
    "'x'", "4096", "0.9", "None", "meta-llama/Llama-3.1-8B", "['a', 'b']", "torch.bfloat16", "{'k': 1}", "<class 'int'>",
    "/srv/models/opt-1.3b", "100%", "several words of it", "größe 模型", "(1, 2)", "a: b",
)  # fmt: skip
TEXT_ALONE, WITH_FRAME = 0.998, 0.9994


def render(row: CatalogRow, source: random.Random) -> str:
    literals = row.key.replace(LINE_BREAK, "\n").split(HOLE)
    return literals[0] + "".join(source.choice(FILLS) + literal for literal in literals[1:])


def best_rows(message: str) -> list[int]:
    hits = sites().hits(message)
    ranks = [(hit.how, hit.length, -hit.holes) for hit in hits]
    return [hit.number for hit, rank in zip(hits, ranks, strict=True) if rank == max(ranks)]


def test_the_text_alone_finds_the_row() -> None:
    source = random.Random(1)  # noqa: S311
    found = [best_rows(render(row, source)) == [row.number] for row in rows()]
    assert sum(found) / len(found) >= TEXT_ALONE


def test_with_frame_and_version_it_finds_the_row_and_the_site() -> None:
    source, found = random.Random(2), list[bool]()  # noqa: S311
    for row in rows():
        site = source.choice(row.sites)
        release = source.choice([number for number in range(site.first, site.last + 1) if site.is_in(number)])
        frame = Located(site.project, site.file, site.function, source.choice(site.lines_in(release)))
        versions = {site.project: site.releases[release]}
        match = sites().find(site.type_in(release)[0], render(row, source), frame, versions)
        found.append(match is not None and match.row.number == row.number and match.confidence == CERTAIN)
    assert sum(found) / len(found) >= WITH_FRAME


def test_lines_of_a_message_are_found_on_one_line_too() -> None:
    several = [row for row in rows() if LINE_BREAK in row.key]
    found = [best_rows(fold(row.key.replace(LINE_BREAK, "\n").replace(HOLE, "4096"))) == [row.number] for row in several]
    assert sum(found) / len(found) >= TEXT_ALONE - 0.01


def test_the_library_asks_it() -> None:
    found = open_library().raise_site("ValueError", MESSAGES[0][0], None, {"vllm": "0.26.0"})
    assert found is not None
    assert (found.site.function, found.confidence) == ("_init_lmcache_engine", CERTAIN)
