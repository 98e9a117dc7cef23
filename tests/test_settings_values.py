from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.settings.amounts import Duration, WrongValueError
from lmdiag.settings.values import Choice, Listen, ListOf, Name, Switch, Text, address, is_loopback, nearest, words

PATHS = ListOf(Text("a path"), ":")
TIMES = ListOf(Duration(1.0, 1e6), ",", rising=True)


@pytest.mark.parametrize(
    ("listen", "parts"),
    [
        ("127.0.0.1:9477", ("127.0.0.1", 9477)),
        ("[::1]:9477", ("::1", 9477)),
        ("localhost:0", ("localhost", 0)),
        ("[fe80::1%eth0]:65535", ("fe80::1%eth0", 65535)),
    ],
)
def test_addresses(listen: str, parts: tuple[str, int]) -> None:
    assert Listen().parse(listen) == listen
    assert address(listen) == parts


@pytest.mark.parametrize("raw", [":9477", "9477", "::1:9477", "127.0.0.1:65536", "127.0.0.1", "http://h:1", "h:1\n", 9477, True, "off"])
def test_what_is_no_address_is_refused(raw: object) -> None:
    with pytest.raises(WrongValueError, match=r"127\.0\.0\.1:9477"):
        Listen().parse(raw)


def test_no_address_is_off() -> None:
    assert (Listen().parse(""), address("")) == ("", None)


@pytest.mark.parametrize(("host", "loopback"), [("localhost", True), ("::1", True), ("127.9.9.9", True), ("10.0.0.1", False), ("h", False), ("", False)])
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback


def test_words_and_what_they_stand_for() -> None:
    kind = Choice({"auto": None, "always": True, "never": False})
    assert [kind.parse(word) for word in kind.options] == [None, True, False]
    assert [kind.text(value) for value in (None, True, False)] == ["auto", "always", "never"]
    with pytest.raises(WrongValueError, match=r'"alway" is none of auto, always, never; did you mean always\?'):
        kind.parse("alway")
    with pytest.raises(WrongValueError, match="true is none of"):
        words("text").parse(True)  # noqa: FBT003 - it is what TOML gives


@pytest.mark.parametrize("raw", ["", " ", "a\0b", 3, None])
def test_what_is_no_path_is_refused(raw: object) -> None:
    with pytest.raises(WrongValueError):
        Text("a path").parse(raw)


@given(st.lists(st.text("abc/:,. ", min_size=1).filter(lambda text: text.strip() == text)))
def test_a_list_reads_back_from_its_text(paths: list[str]) -> None:
    if len(paths) == 1 and ":" in paths[0]:
        paths *= 2  # one path that holds a colon cannot be told from two
    assert list(PATHS.parse(PATHS.split(PATHS.text(paths)))) == paths


def test_newlines_separate_alone() -> None:
    assert PATHS.split("/a:/b") == ["/a", "/b"]
    assert PATHS.split("/a:1\n/b\n") == ["/a:1", "/b"]
    assert TIMES.split(" 5m, 1h,") == ["5m", "1h"]


def test_lists_are_lists() -> None:
    assert TIMES.parse(["5m", 3600]) == (300, 3600)
    with pytest.raises(WrongValueError, match=r'write it in brackets: \["/a"\]'):
        PATHS.parse("/a")
    for wrong in (["1h", "5m"], ["1h", "60m"]):
        with pytest.raises(WrongValueError, match="does not rise"):
            TIMES.parse(wrong)
    with pytest.raises(WrongValueError, match="not a duration"):
        TIMES.parse(["5m", "soon"])


def test_a_list_may_have_to_hold_something() -> None:
    assert PATHS.parse([]) == ()
    with pytest.raises(WrongValueError, match="the list is empty"):
        ListOf(Text("a path"), ":", least=1).parse([])


@pytest.mark.parametrize("raw", [" a", "a ", "a\nb", "a\x1b[31m", "a" * 201, 3, None])
def test_what_is_no_name_is_refused(raw: object) -> None:
    for kind in (Name("a name"), Name("a name", empty=True)):
        with pytest.raises(WrongValueError, match="is not a name"):
            kind.parse(raw)


def test_names_may_be_empty_where_that_means_something() -> None:
    assert [Name("a name").parse(raw) for raw in ("é b", "a" * 200)] == ["é b", "a" * 200]
    assert Name("a name", empty=True).parse("") == ""
    with pytest.raises(WrongValueError):
        Name("a name").parse("")


def test_switches_are_true_or_false() -> None:
    assert Switch().parse(True) is True  # noqa: FBT003 - as a flag gives it
    with pytest.raises(WrongValueError):
        Switch().parse("yes")


@pytest.mark.parametrize(("word", "near"), [("setle", "settle"), ("QUIET_DOWN", "quiet-down"), ("zzz", "")])
def test_what_was_meant(word: str, near: str) -> None:
    assert nearest(word, {"settle": 0, "quiet": 0, "quiet-down": 0}) == near
