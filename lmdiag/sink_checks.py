"""What `lmdiag config check` finds in sinks that is allowed and yet may not be meant."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from lmdiag.config import SinkConfig
from lmdiag.errors import LmdiagError
from lmdiag.forward.credentials import credential, locate
from lmdiag.forward.sink import MEMORY
from lmdiag.settings.amounts import WrongValueError
from lmdiag.settings.sink_table import keys_of
from lmdiag.settings.sink_values import File, Url
from lmdiag.settings.values import is_loopback

_CERTIFICATES = ("ca-file", "cert-file")
_SENT = ("token-file", "password-file", "routing-key-file")


def warnings(sinks: tuple[SinkConfig, ...]) -> Iterator[str]:
    """Look at each sink and at the files that it names, as the user who asks."""
    for sink in sinks:
        for warning in (*_files(sink), *_transport(sink), *_program(sink), *_life(sink)):
            yield f"sinks.{sink.name}: {warning}"


def _files(sink: SinkConfig) -> Iterator[str]:
    for key, setting in keys_of(sink.type).items():
        name = getattr(sink, setting.field) if isinstance(setting.kind, File) else ""
        if name and (problem := _unreadable(key, name)):
            yield problem
        elif name and key != "ca-file" and not (key == "cert-file" and sink.key_file):
            yield from _open_to_others(key, locate(name))
    if sink.path and not os.path.isabs(sink.path):
        yield f"path: {sink.path} is relative to the directory in which lmdiag is started; write it from / on"


def _unreadable(key: str, name: str) -> str:
    """Say why a file cannot be used. The unit's credentials exist only inside of the service, so it is no error."""
    try:
        if key in _CERTIFICATES:  # a bundle of them is larger than any secret
            locate(name).open("rb").close()
        else:
            credential(name, key)
    except (OSError, LmdiagError) as error:
        said = str(error) if isinstance(error, LmdiagError) else f"{key}: {name} cannot be read: {error.strerror}"
        unit = f"; the service gets it by LoadCredential={name}:FILE in its unit" if "/" not in name else ""
        return f"{said}{unit}"
    return ""


def _open_to_others(key: str, path: Path) -> Iterator[str]:
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    mode = path.stat().st_mode
    if mode & 0o077 and not (directory and path.parent == Path(directory)):
        yield f"{key}: {path} is open to other users (mode {mode & 0o777:04o}); chmod 600, and LoadCredential= in the unit"


def _transport(sink: SinkConfig) -> Iterator[str]:
    """A secret that goes over the net for everybody to read."""
    url, secrets = sink.url, [key for key in _SENT if getattr(sink, key.replace("-", "_"))]
    if sink.url_file and sink.type != "apprise":
        try:
            url = Url().parse(credential(sink.url_file, "url-file"))
        except WrongValueError as error:
            yield f"url-file: {error}"
        except (OSError, LmdiagError):
            return  # told already
        secrets.insert(0, "url-file")
    if url.startswith("http:") and secrets and not is_loopback(urlsplit(url).hostname or ""):
        yield f"{secrets[0]}: the secret is sent over http:// for everybody on the way to read; use https://"


def _program(sink: SinkConfig) -> Iterator[str]:
    if sink.command and shutil.which(sink.command[0]) is None:
        yield f"command: there is no program {sink.command[0]} that this user may run"


def _life(sink: SinkConfig) -> Iterator[str]:
    if sink.type in MEMORY and "resolved" not in sink.states:
        yield f'states: without "resolved" an alert at {sink.type} never ends by itself'
