"""Finds and fetches the releases of a project through pip, with the index, proxy and certificates that pip is set to.

pip has no command that fetches a source distribution without building it (vLLM's build needs torch), so pip's own finder
is asked. Its interface is not a promise of pip's: if it changes, the archives can still be fetched by hand and named.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lmdiag.errors import InputError

_CHUNK = 1 << 20
_SOURCES = (".tar.gz", ".zip")


class Index:
    """The package index of this machine's pip."""

    def __init__(self, finder: Any, session: Any) -> None:
        self._finder, self._session = finder, session

    def releases(self, project: str) -> dict[str, str]:
        """Return the final releases of a project, oldest first: version -> address of its best file.

        The source distribution is preferred; a release without one has a wheel that pip would install here. A release
        that was withdrawn later (yanked) counts: there are nodes that run it. Raises InputError if the index has none.
        """
        best: dict[Any, tuple[bool, str]] = {}
        for candidate in self._finder.find_all_candidates(project):
            version, link = candidate.version, candidate.link
            if version.is_prerelease:
                continue
            rank = (not link.filename.endswith(_SOURCES), link.url_without_fragment)
            best[version] = min(best.get(version, rank), rank)
        if not best:
            raise InputError(
                f"the package index has no release of {project!r} (`pip index versions {project}` asks it too)"
            )
        return {str(version): best[version][1] for version in sorted(best)}

    def fetch(self, address: str, directory: Path) -> Path:
        """Fetch a file into a directory. Raises InputError if it does not arrive whole."""
        path = directory / Path(unquote(urlsplit(address).path)).name
        partial = path.with_name(path.name + ".part")
        try:
            self._receive(address, partial)
            return partial.rename(path)
        except OSError as error:  # the errors of requests are OSErrors
            raise InputError(f"{address}: cannot be fetched: {error}") from None
        finally:
            partial.unlink(missing_ok=True)

    def _receive(self, address: str, path: Path) -> None:
        answer = self._session.get(address, stream=True, headers={"Accept-Encoding": "identity"})
        answer.raise_for_status()
        with path.open("wb") as file:
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)
            received = file.tell()
        expected = answer.headers.get("Content-Length")
        if expected and received != int(expected):
            raise InputError(f"{address}: broke off after {received:,} of {int(expected):,} bytes; try again")


@contextmanager
def open_index() -> Iterator[Index]:
    """Open pip's index, for any version of Python: nothing is installed.

    Raises InputError if this Python has no pip, or one whose insides are different.
    """
    with ExitStack() as stack:
        try:
            commands = importlib.import_module("pip._internal.commands")
            command = commands.create_command("download")
            stack.enter_context(command.main_context())
            options, _ = command.parse_args(["--no-deps"])
            session = command.get_default_session(options)
            finder = command._build_package_finder(options, session, ignore_requires_python=True)  # noqa: SLF001
        except (ImportError, AttributeError, TypeError) as error:
            hand = "fetch the archives by hand and name them: lmdiag catalog build vllm-0.26.0.tar.gz"
            raise InputError(f"pip's finder cannot be used here ({error}); {hand}") from error
        yield Index(finder, session)
