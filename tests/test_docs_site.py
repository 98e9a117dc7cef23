"""The published pages: complete, linked, and without a request to another host."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.site import write_site
from lmdiag.match.library import open_library

pytest.importorskip("sphinx", reason="the docs group is not installed")
LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(https?:)?//")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    write_site(root / "source", open_library())
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(root / "source"), str(root / "html")]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return root / "html"


def test_each_card_has_a_page_and_its_data(site: Path) -> None:
    names = set(open_library().pack.ids)
    assert {path.stem for path in (site / "cards").glob("*.html")} == names
    assert {path.stem for path in (site / "cards").glob("*.json")} == names
    data = json.loads((site / "cards" / "mamba-cache-blocks.json").read_text(encoding="utf-8"))
    assert data["id"] == "mamba-cache-blocks"
    assert data["path"] == ""  # where it lay when the site was built is nobody's business


def test_a_page_has_everything_about_its_card(site: Path) -> None:
    page = (site / "cards" / "mamba-cache-blocks.html").read_text(encoding="utf-8")
    for part in ("Meaning", "When it happens", "What to change", "Example", "In a log", "Raised at", "Related", "References"):
        assert f">{part}<" in page
    assert "In vLLM " in page  # the releases of each wording
    assert "https://github.com/vllm-project/vllm/blob/v" in page


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert pages
    assert [path.name for path in pages if LOADED.search(path.read_text(encoding="utf-8"))] == []


def test_the_words_of_a_message_are_in_the_search_index(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "mamba" in index


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; `make docs-check` needs one")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(390, 844), (1280, 900)], ids=["phone", "desktop"])
def test_the_pages_in_a_browser(address: str, scheme: str, size: tuple[int, int]) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser group is not installed")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        asked: list[str] = []
        failed: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        for path in ("index.html", "cards/mamba-cache-blocks.html", "cards/lmcache-mla-naive-serde.html"):
            page.goto(f"{address}/{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]  # nothing stands out at the side
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
            red = int(re.findall(r"\d+", dark)[0])
            assert (red < 128) is (scheme == "dark")
        page.goto(f"{address}/search.html?q=exceeds+available+Mamba+cache+blocks")
        page.wait_for_selector("#search-results a[href*='mamba-cache-blocks']", timeout=10_000)
        browser.close()
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    assert failed == []
