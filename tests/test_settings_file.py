from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.config import WatchConfig
from lmdiag.errors import ConfigError
from lmdiag.settings.file import Loaded, Origin, load, search_path

NOWHERE = {"HOME": "/nowhere", "XDG_CONFIG_HOME": "/nowhere"}


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of the machine's owner takes part."""
    monkeypatch.chdir(tmp_path)


def write(directory: Path, text: str) -> str:
    path = directory / "config.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems(text: str, directory: Path, environment: dict[str, str] = NOWHERE) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load({}, environment, write(directory, text))
    return [problem.replace(f"{directory}/", "") for problem in caught.value.problems]


def named(environment: dict[str, str], flags: Mapping[str, object] | None = None) -> Loaded:
    return load(flags or {}, NOWHERE | environment, "/dev/null")


# Each layer says one of these, or nothing.
SAID = st.none() | st.sampled_from(["2s", "3s", "4s"])
LISTED = st.none() | st.lists(st.sampled_from(["/a", "/b", "/c"]), min_size=1)


@given(file=SAID, variable=SAID, flag=SAID)
def test_the_strongest_that_speaks_wins(file: str | None, variable: str | None, flag: str | None) -> None:
    path = write(Path.cwd(), f'settle = "{file}"' if file else "")
    environment = NOWHERE | ({"LMDIAG_SETTLE": variable} if variable else {})
    loaded = load({"settle": flag} if flag else {}, environment, path)
    told = flag or variable or file or "1s"
    assert loaded.config == WatchConfig(settle=float(told[0]), state=loaded.config.state)
    expected = ("flag", "--settle") if flag else ("environment", "LMDIAG_SETTLE") if variable else ("file", path) if file else ("default", "")
    assert loaded.origins["settle"] == Origin(*expected)


@given(file=LISTED, variable=LISTED, flag=LISTED)
def test_a_list_replaces_the_weaker_one(
    file: list[str] | None, variable: list[str] | None, flag: list[str] | None
) -> None:
    path = write(Path.cwd(), f"paths = {file}" if file else "")
    environment = NOWHERE | ({"LMDIAG_PATHS": ":".join(variable)} if variable else {})
    assert load({"paths": flag} if flag else {}, environment, path).config.paths == tuple(flag or variable or file or ())


def test_everything_in_a_file(tmp_path: Path) -> None:
    text = """
        paths = ["/var/log/vllm", "-"]
        journal = ["vllm.service"]
        from = "boot"
        rules = ["/etc/lmdiag/rules"]
        disable = ["oom"]
        state = "/srv/state"
        listen = ""
        settle = 0.5
        quiet = "30m"
        quiet-down = "7d"
        remind = ["1m", 3600]
        poll = "always"
        poll-interval = "10ms"
        scan-interval = 1
        max-behind = "1GB"
        max-cpu = 2
        format = "jsonl"
        instance = "gpu-1"
        outbox-age = "30d"
        outbox-size = "1MiB"
    """
    assert load({}, NOWHERE, write(tmp_path, text)).config == WatchConfig(
        ("/var/log/vllm", "-"), ("vllm.service",), "boot", ("/etc/lmdiag/rules",), ("oom",), "/srv/state", "", 0.5,
        1800, 604800, (60, 3600), "always", 0.01, 1, 10**9, 2, "jsonl",
        instance="gpu-1", outbox_age=30 * 86400, outbox_size=1 << 20,
    )  # fmt: skip


def test_the_names_in_the_environment() -> None:
    config = named({"LMDIAG_DISABLE": "a,b", "LMDIAG_FROM": "end", "LMDIAG_QUIET_DOWN": "2h", "LMDIAG_PATHS": "/a:1\n/b"}).config
    assert (config.disabled, config.from_, config.quiet_down, config.paths) == (("a", "b"), "end", 7200, ("/a:1", "/b"))


def test_an_empty_variable_is_not_set_save_where_it_means_off() -> None:
    loaded = named({"LMDIAG_SETTLE": "", "LMDIAG_PATHS": "", "LMDIAG_LISTEN": ""})
    assert (loaded.config.settle, loaded.config.paths, loaded.config.listen) == (1, (), "")
    assert loaded.origins["settle"].kind == "default"


def test_flags_of_lists_are_split_save_paths() -> None:
    config = named({}, {"remind": ["5m,1h", "2h"], "journal": ["a.service,b.service"], "paths": ["/a:1,2"]}).config
    assert (config.remind, config.journal, config.paths) == ((300, 3600, 7200), ("a.service", "b.service"), ("/a:1,2",))


def test_flags_that_no_file_has(tmp_path: Path) -> None:
    config = named({"LMDIAG_ONCE": "1"}, {"live": False, "color": "always", "width": "80"}).config
    assert (config.live, config.color, config.width, config.once) == (False, True, 80, False)
    assert problems("once = true", tmp_path) == ["config.toml:1: once: cannot be set in the file; use the flag --once"]


def test_all_problems_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    text = '# settle = 1\nsetle = "1s"\n\n"max-cpu" = true\npoll = "alway"\nquiet_down = 3\nzzz = 1\n[watch]\nx = 1\n'
    assert problems(text, tmp_path, NOWHERE | {"LMDIAG_SETTLE": "soon"}) == [
        "config.toml:2: setle: is not a setting; did you mean settle?",
        "config.toml:4: max-cpu: true is not a number from 0.01 to 64",
        'config.toml:5: poll: "alway" is none of auto, always; did you mean always?',
        "config.toml:6: quiet_down: is not a setting; did you mean quiet-down?",
        "config.toml:7: zzz: is not a setting; remove it, or see what there is with: lmdiag config show",
        "config.toml:8: watch: a section is not known here; write its settings at the top of the file, without sections",
        'LMDIAG_SETTLE: "soon" is not a duration; write for example "500ms", "1s", "30m", "24h" or "7d"',
    ]


def test_the_message_names_each_problem() -> None:
    with pytest.raises(ConfigError) as caught:
        named({"LMDIAG_POLL": "never"}, {"settle": "61s"})
    assert str(caught.value).splitlines()[0] == "2 problems in the configuration:"
    assert str(ConfigError(("one",))) == "one"
    assert any(problem.startswith("--settle: ") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [("settle", "61s"), ("poll-interval", "9ms"), ("poll-interval", "61s"), ("max-cpu", 0.009), ("max-cpu", 65), ("quiet", 0)],
)
def test_ranges(setting: str, wrong: object, tmp_path: Path) -> None:
    told = problems(f"{setting} = {wrong!r}", tmp_path)
    assert len(told) == 1
    assert told[0].startswith(f"config.toml:1: {setting}: ")
    assert "from" in told[0]


BROKEN = {
    "no TOML": (b'\nsettle = 1s\n\n', "config.toml:2: this is no TOML"),
    "a key twice": (b"settle = 1\nsettle = 2\n\n", "config.toml:2: this is no TOML"),
    "no UTF-8": (b"paths = ['\xff']", "config.toml: byte 10 is not UTF-8"),
    "too deep": (b"paths = " + b"[" * 100_000, "config.toml: this is no TOML: it is nested too deeply"),
    "a number without end": (b"settle = " + b"9" * 5000, "config.toml: this is no TOML"),
}


@pytest.mark.parametrize(("content", "told"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_problem(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load({}, NOWHERE, str(path))
    assert len(caught.value.problems) == 1
    assert told in caught.value.problems[0]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    assert load({}, NOWHERE, write(tmp_path, '\ufeffsettle = "2s"')).config.settle == 2


def test_the_first_file_that_exists_is_read(tmp_path: Path) -> None:
    places = [tmp_path / "etc", tmp_path / "xdg" / "lmdiag"]
    for place in places:
        place.mkdir(parents=True)
    environment = {"CONFIGURATION_DIRECTORY": f"{tmp_path / 'none'}:{places[0]}", "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    found = [load({}, environment).file]
    for path in (places[1] / "config.toml", Path("lmdiag.toml"), places[0] / "config.toml"):
        path.touch()
        found.append(load({}, environment).file)
    assert found[1:] == [str(places[1] / "config.toml"), "lmdiag.toml", str(places[0] / "config.toml")]
    named_ = tmp_path / "named.toml"
    named_.touch()
    assert load({}, environment | {"LMDIAG_CONFIG": str(named_)}).file == str(named_)
    assert load({}, environment | {"LMDIAG_CONFIG": str(named_)}, "/dev/null").file == "/dev/null"
    assert load({}, environment | {"LMDIAG_CONFIG": ""}).file == found[-1]


def test_the_places_without_systemd() -> None:
    assert list(search_path({"HOME": "/home/a"})) == ["lmdiag.toml", "/home/a/.config/lmdiag/config.toml", "/etc/lmdiag/config.toml"]


@pytest.mark.parametrize(("file", "environment"), [("/nowhere/c.toml", {}), (None, {"LMDIAG_CONFIG": "/nowhere/c.toml"})])
def test_a_file_that_is_named_must_exist(file: str | None, environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"/nowhere/c\.toml: (--config|LMDIAG_CONFIG) names a file that does not exist"):
        load({}, NOWHERE | environment, file)


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lmdiag.toml")
    with pytest.raises(ConfigError, match="FIFO"):
        load({}, {}, str(tmp_path / "lmdiag.toml"))


def test_a_file_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lmdiag.toml").mkdir()
    with pytest.raises(ConfigError, match=r"lmdiag\.toml: cannot be read: Is a directory; .*--config"):
        load({}, NOWHERE)


@pytest.mark.parametrize(
    ("environment", "user", "state", "origin"),
    [
        ({"STATE_DIRECTORY": "/s/a:/s/b"}, 1000, "/s/a", Origin("environment", "STATE_DIRECTORY")),
        ({}, 0, "/var/lib/lmdiag", Origin("default")),
        ({"HOME": "/home/a"}, 1000, "/home/a/.local/state/lmdiag", Origin("default")),
        ({"XDG_STATE_HOME": "/x"}, 1000, "/x/lmdiag", Origin("default")),
        ({"STATE_DIRECTORY": "/s", "LMDIAG_STATE": "/t"}, 0, "/t", Origin("environment", "LMDIAG_STATE")),
    ],
)
def test_the_state_directory(
    environment: dict[str, str], user: int, state: str, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    loaded = load({}, environment, "/dev/null")
    assert (loaded.config.state, loaded.origins["state"]) == (state, origin)
