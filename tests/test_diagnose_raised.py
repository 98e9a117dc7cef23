from __future__ import annotations

import pytest
from report_samples import CARD

from lmdiag.diagnose.raised import raised_at
from lmdiag.model import ExceptionInfo, Facts, Frame, RaisedAt, RaiseSite

SITE = "/opt/venv/lib/python3.12/site-packages/"
FACTS = Facts(vllm_version="0.26.0", lmcache_version="0.3.9")
VLLM = "https://github.com/vllm-project/vllm/blob"


def info(*files: str) -> ExceptionInfo:
    return ExceptionInfo("ValueError", "x", tuple(Frame(file, 508, "f") for file in files))


FRAMES = {
    "installed": (SITE + "vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
    "of a distribution": ("/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
    "a checkout": ("/src/vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
    "a checkout called like the package": ("/src/vllm/vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
    "relative": ("vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
}


@pytest.mark.parametrize(("file", "path"), FRAMES.values(), ids=FRAMES)
def test_the_last_frame_is_the_raise_site(file: str, path: str) -> None:
    url = f"{VLLM}/v0.26.0/{path}#L508"
    assert raised_at(info(SITE + "vllm/a.py", file), None, FACTS) == RaisedAt("vllm", "0.26.0", path, 508, "f", url)


def test_lmcache_has_its_own_version_and_repository() -> None:
    found = raised_at(info(SITE + "lmcache/v1/manager.py"), None, FACTS)
    assert found == RaisedAt("lmcache", "0.3.9", "lmcache/v1/manager.py", 508, "f", "https://github.com/LMCache/LMCache/blob/v0.3.9/lmcache/v1/manager.py#L508")  # fmt: skip


def test_the_integration_inside_vllm_is_vllms() -> None:
    found = raised_at(info(SITE + "vllm/distributed/kv_transfer/lmcache/adapter.py"), None, FACTS)
    assert found is not None
    assert found.project == "vllm"


@pytest.mark.parametrize("version", [None, "0.15.2rc1.dev93+g11a4c9d30", "0.16.0.dev0", "0.16.0rc1"])
def test_only_a_release_has_a_link(version: str | None) -> None:
    found = raised_at(info(SITE + "vllm/a.py"), None, Facts(vllm_version=version))
    assert found is not None
    assert (found.url, found.line, found.version) == (None, 508, version)


@pytest.mark.parametrize(("version", "tag"), [("0.6.3.post1", "v0.6.3.post1"), ("0.10.2+cu128", "v0.10.2")])
def test_a_build_of_a_release_links_the_release(version: str, tag: str) -> None:
    found = raised_at(info(SITE + "vllm/a.py"), None, Facts(vllm_version=version))
    assert found is not None
    assert found.url == f"{VLLM}/{tag}/vllm/a.py#L508"


def test_another_library_has_no_link() -> None:
    found = raised_at(info(SITE + "torch/cuda/__init__.py"), None, FACTS)
    assert found == RaisedAt("torch", None, "torch/cuda/__init__.py", 508, "f", None)


@pytest.mark.parametrize("files", [(), ("/srv/app.py",), (SITE + "pydantic/_internal/_dataclasses.py",)], ids=["no frames", "a script", "pydantic"])  # fmt: skip
def test_without_a_known_frame_or_card_it_is_unknown(files: tuple[str, ...]) -> None:
    assert raised_at(info(*files), None, FACTS) is None


# The card's site: 0.11.0 -> 480, 0.26.0 -> 508.
LINES = {"0.11.0": 480, "0.13.0": 480, "0.26.0": 508, "0.27.1": 508, "0.10.2": None, None: None}


@pytest.mark.parametrize(("version", "line"), LINES.items())
def test_the_card_knows_the_line_that_pydantic_hides(version: str | None, line: int | None) -> None:
    found = raised_at(info(SITE + "pydantic/_internal/_dataclasses.py"), CARD, Facts(vllm_version=version))
    assert found is not None
    assert (found.file, found.function, found.line) == (CARD.raised_at[0].file, "_init_lmcache_engine", line)
    assert bool(found.url) == bool(line)


def test_a_site_that_was_removed_has_no_line_afterwards() -> None:
    site = RaiseSite("vllm", "vllm/a.py", "f", (("0.11.0", 480),), "0.20.0")
    card = CARD._replace(raised_at=(site,))
    lines = [raised_at(info(), card, Facts(vllm_version=version)) for version in ("0.20.0", "0.21.0")]
    assert [found and found.line for found in lines] == [480, None]


def test_of_two_sites_the_one_of_the_tracebacks_project() -> None:
    sites = (
        RaiseSite("vllm", "vllm/a.py", "f", (("0.1.0", 1),)),
        RaiseSite("lmcache", "lmcache/b.py", "f", (("0.1.0", 2),)),
    )
    found = raised_at(info("/x/lmcache/b.py", SITE + "pydantic/x.py"), CARD._replace(raised_at=sites), FACTS)
    assert found is not None
    assert (found.project, found.line) == ("lmcache", 2)
