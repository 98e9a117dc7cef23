"""Which logs patterns stand for."""

from __future__ import annotations

import os
from pathlib import Path

from lmdiag.read.discover import Discovery, Found


def put(path: Path, data: bytes = b"x\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def paths(discovery: Discovery, below: Path) -> list[str]:
    return [os.path.relpath(found.path, below) for found in discovery.sources()]


def test_a_named_file_is_required_whether_it_exists_or_not(tmp_path: Path) -> None:
    there, gone = put(tmp_path / "there.bin"), str(tmp_path / "gone.log")
    discovery = Discovery([there, gone, "-"])
    assert discovery.sources() == [
        Found(there, there, required=True),
        Found(gone, gone, required=True),
        Found("-", "-", required=True, kind="stdin"),
    ]
    assert discovery.problems == []


def test_a_directory_gives_its_logs_by_name(tmp_path: Path) -> None:
    for name in ("a.log", "sub/deep/b.out", "sub/empty.log", "server"):
        put(tmp_path / name, b"" if "empty" in name else b"x\n")
    for name in (".hidden.log", "program.py", "model.safetensors", "c.log.gz"):
        put(tmp_path / name)
    os.mkfifo(tmp_path / "pipe.log")
    discovery = Discovery([str(tmp_path)])
    assert sorted(paths(discovery, tmp_path)) == ["a.log", "server", "sub/deep/b.out", "sub/empty.log"]
    assert not any(found.required for found in discovery.sources())
    assert dict(discovery.skipped)[str(tmp_path / "pipe.log")] == "FIFO"


def test_rotated_parts_are_not_followed_beside_their_log(tmp_path: Path) -> None:
    for name in ("server.log", "server.log.1", "server.log.2.gz", "server.log-20260101", "other.log.1"):
        put(tmp_path / name)
    for pattern in (f"{tmp_path}/*.log*", str(tmp_path)):
        assert sorted(paths(Discovery([pattern]), tmp_path)) == ["other.log.1", "server.log"]
    named = [str(tmp_path / name) for name in ("server.log", "server.log.1")]  # as the shell expands server.log*
    assert paths(Discovery(named), tmp_path) == ["server.log"]


def test_new_files_are_found_when_it_looks_again(tmp_path: Path) -> None:
    discovery = Discovery([f"{tmp_path}/**/*.log"])
    assert discovery.sources() == []
    [problem] = discovery.problems
    assert "no file fits this pattern yet" in problem
    put(tmp_path / "a" / "b" / "x.log")
    put(tmp_path / "y.log")
    assert sorted(paths(discovery, tmp_path)) == ["a/b/x.log", "y.log"]
    assert discovery.problems == []


def test_two_paths_of_a_file_are_one(tmp_path: Path) -> None:
    log = put(tmp_path / "a.log")
    os.link(log, tmp_path / "hard.log")
    (tmp_path / "soft.log").symlink_to(log)
    (tmp_path / "loop").symlink_to(tmp_path)
    discovery = Discovery([log, str(tmp_path), log])
    assert paths(discovery, tmp_path) == ["a.log"]
    assert dict(discovery.skipped)[str(tmp_path / "soft.log")] == f"the same file as {log}"


def test_a_named_fifo_is_told_apart(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert [found.kind for found in Discovery([str(pipe)]).sources()] == ["fifo"]


def test_what_the_daemon_writes_itself_is_not_followed(tmp_path: Path) -> None:
    own, other = put(tmp_path / "lmdiag.log"), put(tmp_path / "server.log")
    status = os.stat(own)
    discovery = Discovery([own, str(tmp_path)], own=frozenset({(status.st_dev, status.st_ino)}))
    assert [found.path for found in discovery.sources()] == [other]
    assert discovery.problems == [f"{own} is not followed: it is lmdiag's own output"]
    assert (own, "it is lmdiag's own output") in discovery.skipped


def test_a_named_device_or_archive_is_a_problem(tmp_path: Path) -> None:
    packed = put(tmp_path / "old.log.gz")
    discovery = Discovery(["/dev/null", packed, "a\0b"])
    assert discovery.sources() == []
    assert ["device" in discovery.problems[0], "compressed" in discovery.problems[1], len(discovery.problems)] == [True, True, 3]


def test_at_most_so_many_and_what_was_named_first(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path / "many" / f"{number}-x.log")
    named = put(tmp_path / "named.log")
    discovery = Discovery([str(tmp_path / "many"), named], max_files=3)
    assert paths(discovery, tmp_path) == ["named.log", "many/0-x.log", "many/1-x.log"]
    [problem] = discovery.problems
    assert "3 more logs are there than the 3" in problem
    assert "many/2-x.log" in problem


def test_a_directory_that_cannot_be_listed_is_a_problem(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    put(tmp_path / "shut" / "a.log")
    put(tmp_path / "b.log")
    real = os.listdir

    def listdir(path: str) -> list[str]:
        if path.endswith("shut"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    discovery = Discovery([str(tmp_path)])
    assert paths(discovery, tmp_path) == ["b.log"]
    [problem] = discovery.problems
    assert problem.startswith(f"{tmp_path / 'shut'}: Permission denied")


def test_the_kubelets_logs_are_one_source_for_each_container(tmp_path: Path) -> None:
    for name in ("0.log", "0.log.20260101-120000", "1.log", "2.log", "10.log", "2.log.20260101-120000.gz"):
        put(tmp_path / "ns_pod_1-2-3" / "vllm" / name)
    put(tmp_path / "ns_pod_1-2-3" / "proxy" / "0.log")
    put(tmp_path / "ns_pod_4-5-6" / "vllm" / "0.log")
    found = {one.name: os.path.relpath(one.path, tmp_path) for one in Discovery([str(tmp_path)]).sources()}
    assert found == {
        "ns/pod/vllm": "ns_pod_1-2-3/vllm/2.log",
        "ns/pod/proxy": "ns_pod_1-2-3/proxy/0.log",
        str(tmp_path / "ns_pod_4-5-6/vllm/0.log"): "ns_pod_4-5-6/vllm/0.log",  # another pod of the same name
    }
    first = [one.path for one in Discovery([str(tmp_path)], from_start=True).sources() if one.name == "ns/pod/vllm"]
    assert first == [str(tmp_path / "ns_pod_1-2-3/vllm/0.log")]


def test_dockers_logs(tmp_path: Path) -> None:
    container = "0a" * 32
    for name in (f"{container}-json.log", f"{container}-json.log.1", "config.v2.json", "hostconfig.json"):
        put(tmp_path / container / name)
    [found] = Discovery([str(tmp_path)]).sources()
    assert found.path == found.name == str(tmp_path / container / f"{container}-json.log")
