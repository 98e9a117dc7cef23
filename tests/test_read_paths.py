"""Which files the arguments come to."""

from __future__ import annotations

import gzip
import os
import socket
from pathlib import Path

import pytest

from lmdiag.read import paths
from lmdiag.read.paths import expand, rotated_siblings

LOG = b"INFO 01-01 00:00:00 [a.py:1] up\n"


def put(path: Path, data: bytes = LOG) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def names(arguments: list[str], below: Path) -> list[str]:
    return [os.path.relpath(found.path, below) for found in expand(arguments).inputs]


def reasons(expansion: paths.Expansion) -> dict[str, str]:
    return {os.path.basename(path): reason for path, reason in expansion.skipped}


def test_files_and_stdin_keep_the_order_in_which_they_were_named(tmp_path: Path) -> None:
    second, first = put(tmp_path / "b.log"), put(tmp_path / "a.log")
    expansion = expand([second, "-", first, "-"])
    assert [found.source for found in expansion.inputs] == [second, "-", first]
    assert expansion.skipped == (("-", "the same file as -"),)


def test_a_named_file_is_read_whatever_it_is(tmp_path: Path) -> None:
    given = [put(tmp_path / "empty.log", b""), put(tmp_path / "x.bin", b"a\0b"), put(tmp_path / ".hidden.py")]
    assert [found.path for found in expand(given).inputs] == given


def test_a_missing_file_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    there = put(tmp_path / "there.log")
    expansion = expand([str(tmp_path / "gone.log"), there])
    assert [found.path for found in expansion.inputs] == [there]
    [error] = expansion.errors
    assert "gone.log: No such file or directory; check the path" in str(error)


def test_a_path_with_a_nul_is_an_error() -> None:
    assert "null" in str(expand(["a\0b"]).errors[0])


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    log = put(tmp_path / "a.log")
    os.link(log, tmp_path / "hard.log")
    os.symlink(log, tmp_path / "soft.log")
    expansion = expand([log, str(tmp_path / "soft.log"), str(tmp_path)])
    assert [found.path for found in expansion.inputs] == [log]
    assert set(reasons(expansion)) == {"a.log", "hard.log", "soft.log"}
    assert set(reasons(expansion).values()) == {f"the same file as {log}"}


def test_a_directory_gives_its_logs_sorted_and_says_what_it_skips(tmp_path: Path) -> None:
    for name in ("z.log", "a/stdout", "a/w.err", "m.txt", "j.jsonl", "node-10.0.0.1", "vllm.log.2026-01-01"):
        put(tmp_path / name)
    put(tmp_path / "c.log.gz", gzip.compress(LOG))
    put(tmp_path / "utf16.log", "up\n".encode("utf-16"))
    put(tmp_path / "hole.log", b"\0" * 9000 + LOG)
    put(tmp_path / "docker.json", b'{"log":"up\\n"}\n' * 2)
    put(tmp_path / "config.json", b'{\n "a": 1\n}\n')
    put(tmp_path / "core.log", b"\x7fELF\0\0\1")
    put(tmp_path / "empty.log", b"")
    put(tmp_path / "run.py")
    put(tmp_path / "libx.so.1")
    put(tmp_path / ".git/HEAD")
    os.mkfifo(tmp_path / "pipe.log")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.log"))
        expansion = expand([str(tmp_path)])
    assert [os.path.relpath(found.path, tmp_path) for found in expansion.inputs] == [
        "a/stdout", "a/w.err", "c.log.gz", "docker.json", "hole.log", "j.jsonl", "m.txt", "node-10.0.0.1", "utf16.log",
        "vllm.log.2026-01-01", "z.log",
    ]  # fmt: skip
    assert reasons(expansion) == {
        "config.json": "JSON, but not one object a line", "core.log": "binary", "empty.log": "empty",
        "run.py": "not a log by its name", "libx.so.1": "not a log by its name", ".git": "hidden", "pipe.log": "FIFO",
        "s.log": "socket",
    }  # fmt: skip


def test_loops_of_symbolic_links_end(tmp_path: Path) -> None:
    put(tmp_path / "sub/a.log")
    for link in ("one", "two"):
        os.symlink(tmp_path, tmp_path / "sub" / link)
    os.symlink("nowhere", tmp_path / "dangling.log")
    expansion = expand([str(tmp_path)])
    assert [found.path for found in expansion.inputs] == [str(tmp_path / "sub/a.log")]
    assert reasons(expansion)["one"] == f"the same directory as {tmp_path}"
    assert reasons(expansion)["dangling.log"] == "No such file or directory"
    assert names([f"{tmp_path}/**/*.log"], tmp_path) == ["sub/a.log"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every directory")
def test_a_forbidden_directory_is_an_error_and_below_another_it_is_skipped(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir(mode=0)
    assert "Permission denied; run lmdiag as a user that may read it" in str(expand([str(inner)]).errors[0])
    assert reasons(expand([str(tmp_path)])) == {"inner": "Permission denied"}


def test_what_the_system_refuses_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as the test above, for root: the system call is made to refuse."""

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "listdir", refuse)
    assert "Permission denied; run lmdiag as a user that may read it" in str(expand([str(tmp_path)]).errors[0])
    assert expand([f"{tmp_path}/*.log"]).inputs == ()
    assert rotated_siblings(str(tmp_path / "a.log")) == ()


def test_patterns_that_the_shell_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.log", "b.py", "d/c.log", "d/e/f.log", ".h.log", ".x/g.log"):
        put(tmp_path / name)
    put(tmp_path / "empty.log", b"")
    monkeypatch.chdir(tmp_path)
    assert names(["*.log"], tmp_path) == ["a.log"]
    assert names(["?.*"], tmp_path) == ["a.log", "b.py"]
    assert names(["**/*.log"], tmp_path) == ["a.log", "d/c.log", "d/e/f.log"]
    assert names(["d/**"], tmp_path) == ["d/c.log", "d/e/f.log"]
    assert names(["[d]/*.log", ".*.log"], tmp_path) == ["d/c.log", ".h.log"]
    assert names(["d*"], tmp_path) == ["d/c.log", "d/e/f.log"]
    [error] = expand(["nothing-*.log"]).errors
    assert str(error).startswith("nothing-*.log: no file fits this pattern")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    put(tmp_path / "a.log")
    literal = put(tmp_path / "[a].log")
    assert [found.path for found in expand([literal]).inputs] == [literal]


ROTATED = ["s.log-20251230.gz", "s.log-20260101", "s.log.10.gz", "s.log.2.gz", "s.log.1", "s.log.old", "s.log"]


def test_rotated_parts_come_oldest_first(tmp_path: Path) -> None:
    for name in ROTATED:
        put(tmp_path / name, gzip.compress(LOG) if name.endswith("gz") else LOG)
    put(tmp_path / "s.log2")
    assert names([str(tmp_path / name) for name in sorted(ROTATED)], tmp_path) == ROTATED
    assert names([f"{tmp_path}/s.log*"], tmp_path) == [*ROTATED, "s.log2"]
    assert names([f"{tmp_path}/s.log"], tmp_path) == ["s.log"]
    assert names([f"{tmp_path}/s.log-*"], tmp_path) == ROTATED[:2]
    assert [os.path.basename(path) for path in rotated_siblings(f"{tmp_path}/s.log")] == ROTATED[:-1]


@pytest.mark.parametrize(
    ("older", "newer", "log"),
    [
        ("0.log.20260101-110000", "0.log.20260101-120000.gz", "0.log"),
        ("s.log.2026-01-01_23-59-59", "s.log.2026-01-02_00-00-00", "s.log"),
        ("s-20260101.log", "s-20260102.log.xz", "s.log"),
        ("s.log-1767225600", "s.log-1767312000", "s.log"),
        ("stdout.2", "stdout.1.zst", "stdout"),
        ("s.log.1", "s.log.gz", "s.log"),
    ],
)
def test_styles_of_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: str, newer: str, log: str) -> None:
    for name in (newer, older, log):
        put(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert rotated_siblings(log) == (older, newer)
