"""Finding the rotated parts of a log, and knowing which were read."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lmdiag.read.generations import Container, Known, Unreadable, container_of, open_siblings, restarts, siblings
from lmdiag.read.parts import Part, open_part

TEXT = b"".join(b"INFO line %d of the log\n" % number for number in range(40_000))


@pytest.fixture
def opened() -> Iterator[Callable[[Path, bytes], Part]]:
    """Opens parts, and closes them."""
    parts: list[Part] = []

    def open_one(path: Path, data: bytes) -> Part:
        path.write_bytes(data)
        parts.append(open_part(str(path)))
        return parts[-1]

    yield open_one
    for part in parts:
        part.close()


def test_what_is_known_is_known_after_it_was_compressed_and_renamed(
    tmp_path: Path, opened: Callable[[Path, bytes], Part]
) -> None:
    known = Known()
    part = opened(tmp_path / "a.log", TEXT)
    known.add(part.ident, part.lead())
    known = Known(json.loads(json.dumps(known.as_json())))
    os.rename(tmp_path / "a.log", tmp_path / "b.log")
    renamed = open_part(str(tmp_path / "b.log"))
    assert known.has(renamed)
    renamed.close()
    assert known.has(opened(tmp_path / "c.log.gz", gzip.compress(TEXT)))
    assert not known.has(opened(tmp_path / "d.log.gz", gzip.compress(b"other" + TEXT)))
    assert not known.has(opened(tmp_path / "e.log", TEXT))  # the same lines again, but in a file of its own


def test_an_inode_that_is_used_again_is_not_known(tmp_path: Path, opened: Callable[[Path, bytes], Part]) -> None:
    known = Known()
    part = opened(tmp_path / "a.log", b"one\n")
    known.add(part.ident, part.lead())
    again = opened(tmp_path / "a.log", b"two\n")
    assert again.ident == part.ident
    assert not known.has(again)


def test_siblings_leave_out_a_copy_in_the_making_and_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    for name in ("0.log", "0.log.2", "0.log.2.gz", "0.log.3.gz", "0.log.1"):
        (tmp_path / "pods" / name).write_bytes(b"x")
    (tmp_path / "pod.log").symlink_to(tmp_path / "pods" / "0.log")
    for path in (tmp_path / "pods" / "0.log", tmp_path / "pod.log"):
        assert [os.path.basename(found) for found in siblings(str(path))] == ["0.log.3.gz", "0.log.2", "0.log.1"]


def test_siblings_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in (("x.log.3.zip", b""), ("x.log.3", b"PK\x03\x04 a zip"), ("x.log.2", b"shut"), ("x.log.1", b"")):
        (tmp_path / name).write_bytes(data)
    real = os.open

    def guarded(path: str, *rest: int) -> int:
        if path.endswith(".2"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest)

    monkeypatch.setattr(os, "open", guarded)
    found = [one for one in open_siblings(str(tmp_path / "x.log")) if isinstance(one, Unreadable)]
    assert [(os.path.basename(one.path), one.reason, one.status.st_size) for one in found] == [
        ("x.log.3", "archive that cannot be read", 10),
        ("x.log.2", "permission denied", 4),
    ]


def test_the_kubelets_paths() -> None:
    path = "/var/log/pods/llm_vllm-0_0a1b-2c/server/12.log"
    assert container_of(path) == Container("llm/vllm-0/server", 12)
    for other in ("/var/log/vllm/12.log", "/var/log/pods/llm_vllm-0_0a1b/server/12.log.20260101-120000", "12.log"):
        assert container_of(other) is None


def test_the_restarts_of_a_container_are_counted_as_numbers(tmp_path: Path) -> None:
    for name in ("10.log", "9.log", "9.log.20260101-120000", "x.log", "1.txt"):
        (tmp_path / name).touch()
    assert restarts(str(tmp_path)) == [9, 10]
    assert restarts(str(tmp_path / "gone")) == []
