from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from messages import message
from urllib3.util import parse_url

from lmdiag.forward.alerts import labels
from lmdiag.settings.amounts import WrongValueError
from lmdiag.settings.sink_values import Command, File, Glob, Labels, Url, shortened_url

HOSTS = st.sampled_from(["h", "H.example.org", "a_b", "10.0.0.1", "[::1]", "[fe80::1%25eth0]", "1.", "xn--bcher-kva.example"])
PIECES = st.text("ab:/@#?[]%.-_ \\{é\n1", max_size=8)


@pytest.mark.parametrize(
    "url",
    ["http://h", "https://h/", "https://h:443/a/b?c=d&e=%20", "http://[::1]:9093", "http://127.0.0.1:9093", "https://a-b.example.org./x"],
)
def test_urls(url: str) -> None:
    assert Url().parse(url) == url


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("", "does not begin"),
        ("h", "does not begin with https:// or http://"),
        ("ftp://h", "does not begin"),
        ("//h", "does not begin"),
        ("http://", "no host"),
        ("http:///x", "no host"),
        ("http://?x", "no host"),
        ("http://-h", "no host"),
        ("http://a,b", "no host"),
        ("http://a\\b/", "no host"),
        ("http://u@h", "username and password-file"),
        ("http://u:p@h", "username and password-file"),
        ("http://@h", "username and password-file"),
        ("http://h#x", "holds a #"),
        ("http://h/#", "holds a #"),
        ("http://h/a b", "holds a blank"),
        ("http://h/\n", "holds a blank"),
        ("http://h/\x7f", "holds a blank"),
        ("http://é", "not ASCII"),
        ("http://h:65536", "a wrong port"),
        ("http://h:x", "a wrong port"),
        ("http://h:0", "a wrong port"),
        ("http://h:", "a wrong port"),
        ("http://[::1", "holds brackets"),
        ("http://[v1.x]", "a wrong port"),
        ("http://[1:2]", "holds brackets"),
        ("http://[::1]x", "a wrong port"),
        (3, "not a URL in quotation marks"),
        (["http://h"], "not a URL in quotation marks"),
    ],
)
def test_what_is_no_url_is_refused(raw: object, told: str) -> None:
    with pytest.raises(WrongValueError, match=told):
        Url().parse(raw)


@given(scheme=st.sampled_from(["http", "https", "HTTPS"]), host=HOSTS | PIECES, rest=PIECES)
@example("http", "[::1]", "@h")
def test_what_is_a_url_here_is_one_for_urllib3(scheme: str, host: str, rest: str) -> None:
    try:
        url = Url().parse(f"{scheme}://{host}{rest}")
    except WrongValueError:
        return
    parts = parse_url(url)
    assert parts.host
    assert parts.auth is parts.fragment is None
    assert shortened_url(url).lower().startswith(f"{parts.scheme}://")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h:80", "http://h:80"),
        ("http://h/", "http://h"),
        ("https://h/PLANTED", "https://h/…"),
        ("https://h?token=PLANTED", "https://h/…"),
        ("https://[::1]:8/PLANTED?x", "https://[::1]:8/…"),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert Url().text(url) == shown


@pytest.mark.parametrize("name", ["a", "/a/b c", "./a", "pager-key", "xox", "é"])
def test_names_of_files(name: str) -> None:
    assert File().parse(name) == name


@pytest.mark.parametrize(
    "raw", ["", " ", "a\nb", "a\0", "https://h/x", "whsec_abc", "xoxb-1", "Bearer x", "-----BEGIN KEY-----", "a" * 256, 7, None, ["a"]]
)
def test_what_is_no_name_of_a_file_is_refused_and_not_repeated(raw: object) -> None:
    with pytest.raises(WrongValueError) as caught:
        File().parse(raw)
    assert raw in ("", " ") or str(raw) not in str(caught.value) or raw is None


def test_globs() -> None:
    assert [Glob("x").parse(raw) for raw in ("a*", "!a", "!!")] == ["a*", "!a", "!!"]
    for raw in ("", "!", "! ", "a\nb", 1):
        with pytest.raises(WrongValueError, match="is not a glob"):
            Glob("a glob").parse(raw)


@given(st.sampled_from(["card", "source", "alertname", "a", "_", "__a", "a-b", "1", "é", ""]) | st.text(max_size=3))
def test_names_of_labels(name: str) -> None:
    fits = re.fullmatch("(?!__)[a-zA-Z_][a-zA-Z0-9_]*", name) and name not in ("card", "source", "alertname")
    try:
        assert Labels().parse({name: "x"}) == ((name, "x"),)
        assert fits
    except WrongValueError:
        assert not fits


@pytest.mark.parametrize("name", labels(message(), {}))
def test_labels_that_lmdiag_sets_itself_are_refused(name: str) -> None:
    with pytest.raises(WrongValueError, match=f"{name} is a label that lmdiag sets itself"):
        Labels().parse({name: "x"})


def test_labels_keep_their_order() -> None:
    assert Labels().text(Labels().parse({"b": "1", "a": "x y"})) == "b=1,a=x y"


def test_commands() -> None:
    assert Command().parse(["/bin/a", "", "x y"]) == ("/bin/a", "", "x y")
    assert Command().parse(["a"]) == ("a",)
    assert Command().text(["/bin/a", "", "x y"]) == "/bin/a '' 'x y'"
    for raw in ([], [""], [" "], ["./a"], ["a/b"], "a --token PLANTED", ["a", 1], ["a", "PLANTED\0"]):
        with pytest.raises(WrongValueError) as caught:
            Command().parse(raw)
        assert "PLANTED" not in str(caught.value)
