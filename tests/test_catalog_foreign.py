"""Messages of other packages must not pass for vLLM's: the standard library's and pip's, against the shipped catalogue."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from lmdiag.catalog.extract import extract
from lmdiag.catalog.texts import is_opaque
from lmdiag.match.library import open_library
from lmdiag.match.raise_sites import CERTAIN

STDLIB = Path(sysconfig.get_path("stdlib"))
PACKAGES = ("asyncio", "concurrent", "ctypes", "email", "http", "importlib", "json", "logging", "multiprocessing", "urllib", "xml")


@pytest.fixture(scope="module")
def messages() -> list[tuple[str, str]]:
    """(type, message) of what the standard library raises."""
    paths = [*STDLIB.glob("*.py"), *(path for name in PACKAGES for path in (STDLIB / name).rglob("*.py"))]
    sources = {path.relative_to(STDLIB).as_posix(): path.read_text(encoding="utf-8", errors="replace") for path in paths}
    sites, _ = extract(sources)
    texts = {(site.type, text) for site in sites if site.how != "again" for text in site.texts if not is_opaque(text)}
    return [(kind, "".join(part if index % 2 == 0 else "foo" for index, part in enumerate(text))) for kind, text in sorted(texts)]


def test_at_most_two_in_a_thousand_pass_for_a_message_of_vllm(messages: list[tuple[str, str]]) -> None:
    """Without a frame that tells the owner: with one, none does."""
    sites = open_library().sites[0]
    found = [(message, sites.find(kind, message, None, {})) for kind, message in messages]
    wrong = [message for message, match in found if match and match.confidence == CERTAIN]
    assert len(messages) > 1000
    assert len(wrong) / len(messages) <= 0.002, wrong
