from __future__ import annotations

from pathlib import Path

import pytest

from lmdiag.errors import CatalogError
from lmdiag.match.settings import exists, known_in, knows, read_settings

FILE = """{
"lmcache": {"releases": ["0.3.0", "0.3.9"], "settings": {
"key chunk_size": "0.3.0-0.3.9",
"key use_layerwise": "0.3.9-0.3.9",
"flag --l1-size-gb": "0.3.9-0.3.9"}},
"vllm": {"releases": ["0.8.5", "0.9.0", "0.10.0", "0.11.0"], "settings": {
"env VLLM_USE_V1": "0.8.5-0.10.0",
"env HF_TOKEN": "0.8.5-0.8.5",
"field KVTransferConfig.kv_role": "0.8.5-0.11.0",
"field KVTransferConfig.kv_load_failure_policy": "0.11.0-0.11.0",
"flag --kv-transfer-config": "0.8.5-0.11.0",
"flag --hf-overrides": "0.8.5-0.11.0",
"flag --no-*": "0.9.0-0.11.0",
"flag --enable-prefix-caching": "0.8.5-0.11.0",
"flag --swap-space": "0.8.5-0.8.5,0.10.0-0.10.0"}}
}"""
KNOWN = {
    "a flag": ("--swap-space", "0.8.5", True),
    "gone for a while": ("--swap-space", "0.9.0", False),
    "back again": ("--swap-space", "0.10.0", True),
    "gone": ("--swap-space", "0.11.0", False),
    "a build after a release": ("--swap-space", "0.10.0.dev3+g1234", False),
    "a local build": ("--swap-space", "v0.10.0+cu129", True),
    "newer than the table": ("--swap-space", "1.0.0", False),
    "older than the table": ("--swap-space", "0.1.0", False),
    "a negated flag": ("--no-enable-prefix-caching", "0.9.0", True),
    "before there were any": ("--no-enable-prefix-caching", "0.8.5", False),
    "an inner key": ("--kv-transfer-config.kv_role", "0.8.5", True),
    "an inner key of a newer release": ("--kv-transfer-config.kv_load_failure_policy", "0.8.5", False),
    "a free inner key": ("--hf-overrides.max_position_embeddings", "0.8.5", True),
    "a variable": ("VLLM_USE_V1", "0.11.0", False),
    "a variable of others": ("HF_TOKEN", "0.11.0", None),
    "a flag that never was": ("--swap-spaces", "0.11.0", None),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "settings.json").write_text(FILE)
    return str(tmp_path / "settings.json")


@pytest.mark.parametrize(("key", "version", "wanted"), KNOWN.values(), ids=KNOWN)
def test_whether_a_release_of_vllm_knows_a_setting(path: str, key: str, version: str, *, wanted: bool | None) -> None:
    assert known_in(read_settings(path), key, {"vllm": version, "lmcache": None}) is wanted


@pytest.mark.parametrize(
    ("key", "version", "wanted"),
    [
        ("lmcache.use_layerwise", "0.3.0", False),
        ("lmcache.use_layerwise", "0.3.9", True),
        ("LMCACHE_CHUNK_SIZE", "0.3.0", True),
        ("--l1-size-gb", "0.3.9", True),
        ("lmcache.use_layerwise", None, None),
    ],
)
def test_whether_a_release_of_lmcache_does(path: str, key: str, version: str | None, *, wanted: bool | None) -> None:
    assert known_in(read_settings(path), key, {"vllm": "0.11.0", "lmcache": version}) is wanted


@pytest.mark.parametrize(
    ("key", "wanted"),
    [("--swap-space", True), ("--no-enable-prefix-caching", True), ("lmcache.chunk_size", True), ("--swap-spaces", False)],
)
def test_whether_any_release_does(path: str, key: str, *, wanted: bool) -> None:
    assert exists(read_settings(path), key) is wanted


def test_no_table_knows_nothing(tmp_path: Path) -> None:
    table = read_settings(str(tmp_path / "none.json"))
    assert table == {}
    assert known_in(table, "--swap-space", {"vllm": "0.11.0"}) is None


@pytest.mark.parametrize("data", ["", "[]", '{"vllm": 1}', '{"vllm": {"releases": [], "settings": {"a": "1"}}}', '{"vllm": {}}'])
def test_a_damaged_table_says_so(tmp_path: Path, data: str) -> None:
    (tmp_path / "settings.json").write_text(data)
    with pytest.raises(CatalogError, match="build it again"):
        read_settings(str(tmp_path / "settings.json"))


def test_the_shipped_table() -> None:
    """Facts of the released sources: swap space went with 0.18, the V0 engine's last flags with 0.10 and 0.11."""
    vllm = read_settings(str(Path(__file__).parent.parent / "rules" / "catalog" / "settings.json"))["vllm"]
    assert knows(vllm, "flag --swap-space", "0.17.1")
    assert not knows(vllm, "flag --swap-space", "0.18.0")
    assert knows(vllm, "flag --max-model-len", "0.34.0")
    assert knows(vllm, "flag --attention-backend", "0.13.0")
    assert not knows(vllm, "flag --attention-backend", "0.12.0")
    assert knows(vllm, "env VLLM_ATTENTION_BACKEND", "0.10.0")
