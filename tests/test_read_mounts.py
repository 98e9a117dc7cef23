from __future__ import annotations

from pathlib import Path

import pytest

from lmdiag.read.mounts import Mounts, is_deaf, parse_mountinfo

TABLE = r"""22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /mnt rw - ext4 /dev/sdb rw
31 22 0:31 / /mnt/share\040of\040logs rw,relatime shared:5 master:2 - nfs4 server:/x rw
32 30 0:32 / /mnt/deep rw - fuse.sshfs host:/ rw
33 22 0:33 / /over rw - ext4 /dev/sdc rw
34 33 0:34 / /over rw - overlay overlay rw
a line that is none
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Mounts:
    (tmp_path / "mountinfo").write_text(TABLE)
    return Mounts(str(tmp_path / "mountinfo"))


@pytest.mark.parametrize(
    ("directory", "deaf"),
    [
        ("/var/log", False), ("/mnt", False), ("/mnt/share of logs", True), ("/mnt/share of logs/a", True),
        ("/mnt/share", False), ("/mnt/deep/x", True), ("/mnt/deeper", False), ("/over/x", True), ("/", False),
    ],
)  # fmt: skip
def test_the_innermost_newest_mount_counts(mounts: Mounts, directory: str, deaf: bool) -> None:
    assert mounts.deaf(directory) is deaf


def test_a_link_leads_to_another_file_system(mounts: Mounts, tmp_path: Path) -> None:
    (tmp_path / "logs").symlink_to("/over/logs")
    assert mounts.deaf(str(tmp_path / "logs"))


def test_the_table_is_read_anew_only_when_asked(mounts: Mounts, tmp_path: Path) -> None:
    assert not mounts.deaf("/srv")
    (tmp_path / "mountinfo").write_text(TABLE + "40 22 0:40 / /srv rw - lustre x rw\n")
    assert not mounts.deaf("/srv")
    mounts.forget()
    assert mounts.deaf("/srv")


def test_without_a_table_nothing_is_deaf(tmp_path: Path) -> None:
    assert not Mounts(str(tmp_path / "none")).deaf("/var/log")


def test_escapes() -> None:
    assert parse_mountinfo(r"1 2 0:1 / /a\134b\012c rw - tmpfs t rw") == [("/a\\b\nc", "tmpfs")]


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse", "fuse.glusterfs", "lustre", "gpfs", "beegfs", "9p", "virtiofs", "ceph", "overlay"])  # fmt: skip
def test_deaf_kinds(kind: str) -> None:
    assert is_deaf(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "fuseblk", ""])
def test_hearing_kinds(kind: str) -> None:
    assert not is_deaf(kind)
