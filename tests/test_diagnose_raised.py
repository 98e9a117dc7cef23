from __future__ import annotations

from functools import cache

import pytest
from catalog_samples import MODEL, Releases, rows_of_releases, site
from report_samples import CARD

from lmdiag.catalog.encode import encode
from lmdiag.diagnose.raised import raised_at
from lmdiag.match.library import Library, open_library
from lmdiag.match.pack import Pack
from lmdiag.model import Card, ExceptionInfo, Facts, Frame, RaisedAt, RaiseSite, Rewording, SourceLine

SITE = "/opt/venv/lib/python3.12/site-packages/"
PYDANTIC = SITE + "pydantic/_internal/_dataclasses.py"
FACTS = Facts(vllm_version="0.26.0", lmcache_version="0.3.9")
VLLM = "https://github.com/vllm-project/vllm/blob"
LENGTH = "The length {n} is larger than the limit {limit}"
SAID = "The length 5 is larger than the limit 3"
OLD, NEW = "The window {n} cannot be larger than {limit}", "The window {n} cannot be much larger than {limit}"
HISTORY: Releases = {
    "vllm 0.25.0": [site(LENGTH, line=500), site(OLD, line=20, name="window"), site("{error}", line=30, name="wrap")],
    "vllm 0.26.0": [site(LENGTH, line=508), site(OLD, line=22, name="window"), site("{error}", line=31, name="wrap")],
    "vllm 0.27.0": [site(LENGTH, line=511), site(NEW, line=25, name="window"), site("bad {what}", line=40, name="weak")],
    "lmcache 0.3.9": [site("Unknown kind of backend: {kind} given", line=7, file="lmcache/a.py", name="kind")],
}


@cache
def library(path: str, *, known: bool = True) -> Library:
    if known:
        with open(path, "wb") as file:
            file.write(encode(rows_of_releases(HISTORY)))
    return Library(Pack({}, (), {}), [path] if known else [])


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return library(str(tmp_path_factory.mktemp("catalog") / "catalog.bin"))


NONE = library("", known=False)


def info(*files: str, message: str = "x", line: int = 508, function: str = "f", type: str | None = "ValueError") -> ExceptionInfo:
    return ExceptionInfo(type, message, tuple(Frame(file, line, function) for file in files))


def found(error: ExceptionInfo, cards: Library, *, card: Card | None = None, facts: Facts = FACTS, truncated: bool = False) -> RaisedAt:
    at = raised_at(error, card, facts, cards, truncated=truncated)
    assert at is not None
    return at


# -- the traceback tells it --------------------------------------------------------------------------------------------

FRAMES = {
    "installed": (SITE + "vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
    "of a distribution": ("/usr/lib/python3/dist-packages/vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
    "a checkout called like the package": ("/src/vllm/vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("file", "path"), FRAMES.values(), ids=FRAMES)
def test_the_last_frame_is_the_raise_site(file: str, path: str, cards: Library, *, known: bool) -> None:
    url = f"{VLLM}/v0.26.0/{path}#L508"
    at = found(info(SITE + "vllm/a.py", file), cards if known else NONE)
    assert at == RaisedAt("vllm", "0.26.0", path, 508, "f", url)


def test_lmcache_has_its_own_version_and_repository() -> None:
    assert found(info(SITE + "lmcache/v1/manager.py"), NONE) == RaisedAt("lmcache", "0.3.9", "lmcache/v1/manager.py", 508, "f", "https://github.com/LMCache/LMCache/blob/v0.3.9/lmcache/v1/manager.py#L508")  # fmt: skip


def test_the_integration_inside_vllm_is_vllms() -> None:
    assert found(info(SITE + "vllm/distributed/kv_transfer/lmcache/adapter.py"), NONE).project == "vllm"


@pytest.mark.parametrize("version", [None, "0.15.2rc1.dev93+g11a4c9d30", "0.16.0.dev0", "0.16.0rc1"])
def test_only_a_release_has_a_link(version: str | None) -> None:
    at = found(info(SITE + "vllm/a.py"), NONE, facts=Facts(vllm_version=version))
    assert (at.url, at.line, at.version) == (None, 508, version)


@pytest.mark.parametrize(("version", "tag"), [("0.6.3.post1", "v0.6.3.post1"), ("0.10.2+cu128", "v0.10.2")])
def test_a_build_of_a_release_links_the_release(version: str, tag: str) -> None:
    assert found(info(SITE + "vllm/a.py"), NONE, facts=Facts(vllm_version=version)).url == f"{VLLM}/{tag}/vllm/a.py#L508"


@pytest.mark.parametrize("message", ["x", SAID])
def test_another_library_has_no_link_and_no_history(message: str, cards: Library) -> None:
    at = found(info(SITE + "torch/cuda/__init__.py", message=message), cards)
    assert at == RaisedAt("torch", None, "torch/cuda/__init__.py", 508, "f", None)


def test_the_catalogue_adds_the_history_of_the_message(cards: Library) -> None:
    at = found(info(SITE + MODEL, message=SAID, function="check"), cards)
    assert (at.told_by, at.file, at.line, at.confidence) == ("traceback", MODEL, 508, "certain")
    assert (at.since, at.until, at.reworded, at.contradiction) == ("0.25.0", None, None, None)
    assert at.now == SourceLine("0.27.0", MODEL, 511, "check", f"{VLLM}/v0.27.0/{MODEL}#L511")
    assert at.catalog is not None
    assert len(at.catalog) == 10


def test_now_is_left_out_where_it_is_the_same_place(cards: Library) -> None:
    at = found(info(SITE + MODEL, message=SAID, function="check", line=511), cards, facts=Facts(vllm_version="0.27.0"))
    assert (at.now, at.contradiction) == (None, None)


def test_a_message_that_was_reworded(cards: Library) -> None:
    at = found(info(SITE + MODEL, message="The window 5 cannot be larger than 3", function="window", line=22), cards)
    assert at.until == "0.26.0"
    assert isinstance(at.reworded, Rewording)
    assert (at.reworded.version, at.reworded.message) == ("0.27.0", NEW)


def test_a_version_that_cannot_have_raised_it(cards: Library) -> None:
    at = found(info(SITE + MODEL, message=SAID, function="check", line=500), cards)
    assert at.contradiction is not None
    assert "line 500" in at.contradiction
    assert found(info(SITE + MODEL, message=SAID, function="check", line=500), cards, facts=Facts()).contradiction is None


def test_where_the_log_names_no_version_the_line_does(cards: Library) -> None:
    at = found(info(SITE + MODEL, message=SAID, function="check", line=500), cards, facts=Facts())
    assert (at.version, at.by_line, at.url) == (None, "0.25.0", f"{VLLM}/v0.25.0/{MODEL}#L500")
    assert found(info(SITE + MODEL, message=SAID, function="check", line=501), cards, facts=Facts()).by_line is None


def test_a_line_of_another_release_than_the_stated_one_is_linked_there(cards: Library) -> None:
    at = found(info(SITE + MODEL, message=SAID, function="check", line=500), cards, facts=Facts(vllm_version="0.26.0"))
    assert at.contradiction is not None
    assert (at.version, at.by_line, at.url) == ("0.26.0", "0.25.0", f"{VLLM}/v0.25.0/{MODEL}#L500")


def test_what_hides_a_frame_must_be_called_by_the_project(cards: Library) -> None:
    """An operator's own pydantic model may repeat vLLM's words."""
    own = info("/srv/settings.py", PYDANTIC, message=SAID)
    assert raised_at(own, None, FACTS, cards) is None
    assert found(info(SITE + "vllm/engine/arg_utils.py", PYDANTIC, message=SAID), cards).told_by == "catalog"
    assert found(info(PYDANTIC, message=SAID), cards).told_by == "catalog"


def test_a_few_words_count_only_with_their_frame(cards: Library) -> None:
    facts = Facts(vllm_version="0.27.0")
    assert found(info(SITE + "vllm/b.py", message="bad thing"), cards, facts=facts).catalog is None
    assert found(info(SITE + MODEL, message="bad thing", function="weak", line=40), cards, facts=facts).catalog is not None


def test_a_site_without_words_is_known_by_its_frame(cards: Library) -> None:
    at = found(info(SITE + MODEL, message="whatever it says", function="wrap", line=31), cards)
    assert (at.since, at.until, at.confidence) == ("0.25.0", "0.26.0", "certain")


def test_the_words_of_the_other_project_tell_nothing_about_this_one(cards: Library) -> None:
    at = found(info(SITE + "vllm/b.py", message="Unknown kind of backend: x given"), cards)
    assert (at.project, at.catalog) == ("vllm", None)


# -- the catalogue tells it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [(), (PYDANTIC,)], ids=["no frames", "pydantic"])
def test_the_catalogue_knows_the_site_of_a_hidden_frame(files: tuple[str, ...], cards: Library) -> None:
    at = found(info(*files, message=SAID), cards)
    assert (at.told_by, at.project, at.version, at.file, at.line, at.function) == ("catalog", "vllm", "0.26.0", MODEL, 508, "check")
    assert at.url == f"{VLLM}/v0.26.0/{MODEL}#L508"
    assert at.now is not None
    assert at.now.line == 511


@pytest.mark.parametrize("version", [None, "0.26.1.dev3+gabc"])
def test_of_no_release_the_line_is_not_known(version: str | None, cards: Library) -> None:
    at = found(info(message=SAID), cards, facts=Facts(vllm_version=version))
    assert (at.file, at.line, at.url, at.version) == (MODEL, None, None, version)
    assert at.now is not None


def test_a_message_of_lmcache(cards: Library) -> None:
    at = found(info(message="Unknown kind of backend: x given"), cards)
    assert (at.project, at.version, at.file, at.line) == ("lmcache", "0.3.9", "lmcache/a.py", 7)


def test_a_message_that_is_cut_off(cards: Library) -> None:
    assert raised_at(info(message=SAID[:-9]), None, FACTS, cards) is None
    assert found(info(message=SAID[:-9]), cards, truncated=True).confidence == "probable"


def test_a_few_words_that_the_version_does_not_have_tell_nothing(cards: Library) -> None:
    assert raised_at(info(message="bad thing"), None, FACTS, cards) is None
    assert found(info(message="bad thing"), cards, facts=Facts(vllm_version="0.27.0")).confidence == "candidate"
    assert found(info(message="bad thing"), cards, facts=Facts()).confidence == "candidate"


def test_code_of_no_package_may_repeat_the_words_of_vllm(cards: Library) -> None:
    for message in (SAID, "bad thing"):
        assert raised_at(info("/srv/app.py", message=message), None, Facts(vllm_version="0.27.0"), cards) is None


# -- the words or the card tell it -------------------------------------------------------------------------------------------

FOREIGN = "Expecting value: line 1 column 1 (char 0)"


@pytest.mark.parametrize("card", [None, CARD])
def test_a_known_saying_of_another_package(card: Card | None, cards: Library) -> None:
    at = found(info(message=FOREIGN, type="json.decoder.JSONDecodeError"), cards, card=card)
    assert at == RaisedAt("json", None, None, None, None, None, "words")


@pytest.mark.parametrize("files", [(), ("/srv/app.py",), (PYDANTIC,)], ids=["no frames", "a script", "pydantic"])
def test_without_anything_that_tells_it_is_unknown(files: tuple[str, ...], cards: Library) -> None:
    assert raised_at(info(*files), None, FACTS, cards) is None
    assert raised_at(info(*files), None, FACTS, NONE) is None


# The card's site: 0.11.0 -> 480, 0.26.0 -> 508.
LINES = {"0.11.0": 480, "0.13.0": 480, "0.26.0": 508, "0.27.1": 508, "0.10.2": None, None: None}


@pytest.mark.parametrize(("version", "line"), LINES.items())
def test_the_card_knows_the_line_that_pydantic_hides(version: str | None, line: int | None, cards: Library) -> None:
    at = found(info(PYDANTIC), cards, card=CARD, facts=Facts(vllm_version=version))
    assert (at.told_by, at.file, at.function, at.line) == ("card", CARD.raised_at[0].file, "_init_lmcache_engine", line)
    assert bool(at.url) == bool(line)


def test_the_catalogue_is_asked_before_the_card(cards: Library) -> None:
    assert found(info(PYDANTIC, message=SAID), cards, card=CARD).told_by == "catalog"
    assert found(info(PYDANTIC, message=SAID), NONE, card=CARD).told_by == "card"
    assert found(info(message="bad thing"), cards, card=CARD, facts=Facts(vllm_version="0.27.0")).told_by == "card"


def test_a_site_that_was_removed_has_no_line_afterwards() -> None:
    site_ = RaiseSite("vllm", "vllm/a.py", "f", (("0.11.0", 480),), "0.20.0")
    card = CARD._replace(raised_at=(site_,))
    lines = [found(info(), NONE, card=card, facts=Facts(vllm_version=version)).line for version in ("0.20.0", "0.21.0")]
    assert lines == [480, None]


def test_of_two_sites_the_one_of_the_tracebacks_project() -> None:
    sites = (
        RaiseSite("vllm", "vllm/a.py", "f", (("0.1.0", 1),)),
        RaiseSite("lmcache", "lmcache/b.py", "f", (("0.1.0", 2),)),
    )
    at = found(info("/x/lmcache/b.py", PYDANTIC), NONE, card=CARD._replace(raised_at=sites))
    assert (at.project, at.line) == ("lmcache", 2)


def test_a_catalogue_that_breaks_while_it_is_asked_costs_only_its_history(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("broken") / "catalog.bin"
    path.write_bytes(encode(rows_of_releases(HISTORY))[:-4] + b"oops")
    broken = Library(Pack({}, (), {}), [str(path)])
    at = found(info(SITE + MODEL, message=SAID, function="check"), broken)
    assert at == RaisedAt("vllm", "0.26.0", MODEL, 508, "check", f"{VLLM}/v0.26.0/{MODEL}#L508")
    assert len(broken.problems) == 1


def test_without_a_frame_a_message_of_several_functions_is_told_as_such() -> None:
    """The words alone do not say which of them it was; a frame does."""
    shipped = open_library()
    message = "MLA only works with naive serde mode.."
    assert found(info(message=message), shipped).elsewhere == 1
    manager = SITE + "vllm/distributed/kv_transfer/kv_connector/v1/lmcache_integration/vllm_v1_adapter.py"
    assert found(info(manager, message=message, function="_init_lmcache_engine"), shipped).elsewhere == 0
