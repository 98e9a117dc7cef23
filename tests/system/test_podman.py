"""CRI logs as podman's conmon writes them, the way a kubelet lays them out and rotates them."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from failing import compress, failing_start, message
from watching import Watch, scanned

TOOLS = ("podman", "conmon", "unshare", "ldd")
_MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
_PROGRAMS = ("/bin/sh", "/bin/cat", "/bin/rm", "/bin/sleep")
_POD = "default_vllm-0_5f0c1d7e-0000-4000-8000-000000000001"
_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000")
_LONG = 40_000
"""Letters in one line: conmon cuts at 8 KiB."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="unshare and podman need root here"),
]


class Podman:
    """Podman with storage of its own, in a mount namespace of its own; no registry and no network."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._run = tempfile.mkdtemp(prefix="lmdiag-")  # podman refuses a path above 50 bytes
        self._options = [
            *("--root", str(directory / "storage"), "--runroot", self._run, "--storage-driver", "vfs"),
            *("--cgroup-manager", "cgroupfs", "--events-backend", "none"),
        ]

    def command(self, *arguments: str) -> list[str]:
        """Return a podman command as it must be run: in a namespace where it can mount cgroups."""
        mounted = 'mount -t cgroup2 none /sys/fs/cgroup && exec podman "$@"'
        return ["unshare", "-m", "sh", "-c", mounted, "podman", *self._options, *arguments]

    def run(self, *arguments: str) -> str:
        """Run a podman command to its end."""
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def control(self) -> Path:
        """Return the pipe through which the only container's conmon takes commands."""
        (found,) = (self._directory / "storage" / "vfs-containers").glob("*/userdata/ctl")
        return found

    def remove(self) -> None:
        """Remove the container and what podman keeps outside the test's directory."""
        self.run("rm", "vllm")
        shutil.rmtree(self._run)

    def image(self) -> None:
        """Import an image that holds a shell and a few programs of this machine."""
        archive = self._directory / "image.tar"
        with tarfile.open(archive, "w", dereference=True) as tar:
            for path in sorted({*_PROGRAMS, *(one for program in _PROGRAMS for one in libraries(program))}):
                tar.add(path, path.lstrip("/"))
        self.run("import", str(archive), "lmdiag-test")


def libraries(program: str) -> list[str]:
    """Return the shared libraries that a program loads."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?:=> )?(/\S+) \(0x", told)


class Container:
    """A container that prints what lies in a directory, file after file, whatever the test puts there."""

    def __init__(self, podman: Podman, directory: Path) -> None:
        self.log = directory / "pods" / _POD / "vllm" / "0.log"
        self.log.parent.mkdir(parents=True)
        self._podman = podman
        self._feed = directory / "feed"
        self._feed.mkdir()
        self._fed = 0
        script = (
            "while :; do for f in /feed/*.out /feed/*.err; do case $f in"
            " */*[*]*) continue;; *.out) cat $f;; *.err) cat $f >&2;; esac; rm $f; done;"
            " [ -e /feed/end ] && exit 0; sleep 0.02; done"
        )
        self._process = subprocess.Popen(
            podman.command(
                *("run", "--name", "vllm", "--cgroups=disabled", "--network=none", *_LIMITS),
                *("--log-driver=k8s-file", f"--log-opt=path={self.log}", "-v", f"{self._feed}:/feed"),
                *("lmdiag-test", "/bin/sh", "-c", script),
            ),
            stdout=subprocess.DEVNULL,
        )

    def print(self, data: bytes, stream: str = "out") -> None:
        """Let the container print some bytes; return when it has."""
        self._fed += 1
        made = self._feed / f"{self._fed:04}.making"
        made.write_bytes(data)
        printed = made.rename(made.with_suffix(f".{stream}"))
        while printed.exists():
            assert self._process.poll() is None, "the container has ended"

    def rotate(self) -> Path:
        """Rename the log and let conmon open a new one, as the kubelet has it done."""
        moved = self.log.rename(self.log.with_name("0.log.20261203-054200"))
        self._podman.control().write_bytes(b"2 0 0\n")  # conmon's command to open its log anew
        while not self.log.exists():
            assert self._process.poll() is None, "the container has ended"
        return moved

    def end(self) -> None:
        """Let the container end by itself."""
        (self._feed / "end").touch()
        assert self._process.wait(30) == 0


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    """A running container, its log in a kubelet's directories."""
    podman = Podman(tmp_path)
    podman.image()
    container = Container(podman, tmp_path)
    yield container
    container.end()
    podman.remove()


def everything(directory: Path) -> list[Path]:
    """Watch the pods' directory."""
    return [directory / "pods"]


def links(directory: Path) -> list[Path]:
    """Watch the directory in which the kubelet keeps a symbolic link to each container's log."""
    made = directory / "containers"
    made.mkdir()
    (made / "vllm-0_default_vllm-0123abcd.log").symlink_to(directory / "pods" / _POD / "vllm" / "0.log")
    return [made]


@pytest.mark.parametrize("paths", [everything, links])
def test_a_failing_container_is_reported_once_over_long_lines_stderr_and_rotation(
    tmp_path: Path, container: Container, paths: Callable[[Path], list[Path]]
) -> None:
    with Watch(paths(tmp_path), tmp_path, "--from", "start") as watch:
        long = b"(EngineCore pid=9) INFO 12-01 02:51:10 [core.py:133] " + b"x" * _LONG + b"\n"
        first = failing_start(0)
        middle = first.index(b"EngineCore failed to start")
        container.print(long + first[:middle])
        container.print(b"Triton is installed, but doesn't include CPU backend.\n", "err")
        container.print(first[middle:])
        watch.until(lambda: messages(watch) == {message(0)}, "the first incident")
        second = failing_start(1)
        container.print(second[:middle] + b"y" * _LONG)  # a line that is not finished when the log is rotated
        moved = container.rotate()
        container.print(b"\n" + second[middle:])
        watch.until(lambda: messages(watch) == {message(0), message(1)}, "the incident on both sides of the rotation")
        compress(moved)
        third = failing_start(2)
        container.print(third, "err")
        watch.until(lambda: len(messages(watch)) == 3, "the incident on stderr")
    assert messages(watch) == {message(number) for number in range(3)}
    assert [ids for ids in watch.ids().values() if len(ids) > 1] == []
    assert b" P " in container.log.read_bytes() + gunzipped(moved)
    newest = scanned(container.log)
    assert [one["fingerprint"] for one in newest] == [watch.incidents("opened")[-1].data["fingerprint"]]


def gunzipped(path: Path) -> bytes:
    """Return what a rotated log held before it was compressed."""
    return gzip.decompress(Path(f"{path}.gz").read_bytes())


def messages(watch: Watch) -> set[str]:
    """Return the messages of the incidents reported until now."""
    return {one.message for one in watch.incidents()}
