"""What `lmdiag receive` was asked to do."""

from __future__ import annotations

from typing import NamedTuple


class ReceiveConfig(NamedTuple):
    """The arguments of `lmdiag receive`."""

    paths: tuple[str, ...] = ()
    """The logs of each alert: files, directories, patterns."""
    logs: str = ""
    """Instead of them a pattern with {label} in it, which each alert fills."""
    listen: str = "127.0.0.1:9478"
    """HOST:PORT"""
    token_file: str = ""
    """Whose content a client sends as `Authorization: Bearer`; a path, or the name of a systemd credential."""
    no_token: bool = False
    """Take alerts of anybody on this machine."""
    rules: tuple[str, ...] = ()
    """A site's own card directories; later ones win."""
    disabled: tuple[str, ...] = ()
    """Ids of cards that are not to be used."""
