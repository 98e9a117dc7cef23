"""Writes the rows of a catalogue as the file that a scan reads. The same rows give the same bytes."""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from lmdiag.catalog.aliases import rewordings
from lmdiag.catalog.rows import At, Place, Row, Rows
from lmdiag.match.catalog_format import FORMAT, HOWS, MAGIC, OPAQUE, ROWS_PER_BLOCK
from lmdiag.match.catalog_words import words_of
from lmdiag.match.versions import release_order

_HOWS = {name: letter for letter, name in HOWS.items()}
_NEVER = (1 << 30,)


def encode(rows: Rows) -> bytes:
    """Return the file of a catalogue; see lmdiag.match.catalog_format."""
    versions = {
        project: sorted(found, key=release_order) for project, found in sorted(rows.versions.items(), reverse=True)
    }
    ordered = sorted(rows.rows.values(), key=_order)
    number = {row.key: index for index, row in enumerate(ordered)}
    blocks = [ordered[start : start + ROWS_PER_BLOCK] for start in range(0, len(ordered), ROWS_PER_BLOCK)]
    parts = {
        "words": "\n".join(_words([row.key for row in ordered])),
        "files": "\n".join(_files(blocks)),
        "renamed": "\n".join(f"{number[old]} {number[new]}" for old, new in rewordings(rows, versions)),
    }
    packed = {name: zlib.compress(text.encode(), 9) for name, text in parts.items()}
    texts = [zlib.compress("\n".join(row.key for row in block).encode(), 9) for block in blocks]
    packed_blocks = [zlib.compress(_json([_row(row, versions) for row in block]).encode(), 9) for block in blocks]
    return _file({"versions": versions, "rows": len(ordered)}, packed, texts, packed_blocks)


def _file(head: dict[str, object], parts: dict[str, bytes], texts: list[bytes], blocks: list[bytes]) -> bytes:
    offset, places = 0, []
    for data in (*parts.values(), *texts, *blocks):
        places.append([offset, len(data)])
        offset += len(data)
    head["parts"] = dict(zip(parts, places, strict=False))
    head["texts"] = places[len(parts) : len(parts) + len(texts)]
    head["blocks"] = places[len(parts) + len(texts) :]
    packed = zlib.compress(_json(head).encode(), 9)
    return b"".join([f"{MAGIC} {FORMAT} {len(packed)}\n".encode(), packed, *parts.values(), *texts, *blocks])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _order(row: Row) -> tuple[object, ...]:
    """Rows of one file stand together, as they stand in it: like texts compress well."""
    place, at = max(
        ((place, version) for place, found in row.places.items() for version in found),
        key=lambda item: (item[0].project == "vllm", release_order(item[1]), item[0]),
    )
    return place.project, place.file, place.qualname, row.places[place][at].lines, row.key


def _row(row: Row, versions: dict[str, list[str]]) -> list[object]:
    projects = list(versions)
    sites = [
        [
            projects.index(place.project),
            place.file,
            place.qualname,
            _HOWS[place.how] + "v" * place.validator,
            *_history(found, versions[place.project]),
        ]
        for place, found in sorted(row.places.items(), key=lambda item: _newest_first(item, versions))
    ]
    return [" ".join(name or "_" for name in row.names), *sites]


def _newest_first(item: tuple[Place, dict[str, At]], versions: dict[str, list[str]]) -> tuple[object, ...]:
    place, found = item
    return place.project != "vllm", -max(map(versions[place.project].index, found)), place


def _history(found: dict[str, At], versions: Sequence[str]) -> tuple[list[list[object]], list[list[int]]]:
    """Return the types and the lines of a site over the releases."""
    indexed = sorted((versions.index(version), at) for version, at in found.items())
    types = [[index, *_type(at)] for index, at in indexed]
    changes = [types[0], *(new for old, new in pairwise(types) if old[1:] != new[1:])]
    open_runs: list[list[int]] = []
    runs: list[list[int]] = []
    last, ends = -2, list[int]()
    for index, at in indexed:
        keep = min(len(ends), len(at.lines)) if index == last + 1 else 0
        open_runs = open_runs[:keep]
        for run, end, line in zip(open_runs, ends, at.lines, strict=False):
            run.append(line - end)
        for line in at.lines[keep:]:
            open_runs.append([index, line])
            runs.append(open_runs[-1])
        last, ends = index, list(at.lines)
    return changes, runs


def _type(at: At) -> tuple[str, ...]:
    return (at.type,) if at.family == at.type else (at.type, at.family)


def _words(keys: Sequence[str]) -> Iterable[str]:
    """File each row under the rarest of its words; those that stand on the first line first."""
    found = [words_of(key) for key in keys]
    counts = Counter(word for first, rest in found for word in first | rest)
    filed: dict[str, list[int]] = defaultdict(list)
    for number, (first, rest) in enumerate(found):
        if keys[number].startswith(OPAQUE):
            continue
        word = min(first or rest, key=lambda item: (counts[item], -len(item), item), default="")
        filed[word].append(number)
    return (f"{word} {' '.join(map(str, filed[word]))}" for word in sorted(filed))


def _files(blocks: Sequence[Sequence[Row]]) -> Iterable[str]:
    found: dict[str, set[int]] = defaultdict(set)
    for number, block in enumerate(blocks):
        for row in block:
            for place in row.places:
                found[place.file].add(number)
    return (f"{path} {' '.join(map(str, sorted(found[path])))}" for path in sorted(found))
