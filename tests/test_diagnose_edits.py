from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.diagnose.edits import edits, is_done
from lmdiag.model import Edit

CONNECTOR = (
    "KVTransferConfig(kv_connector='LMCacheConnectorV1', kv_role='kv_producer', kv_rank=None, "
    "kv_connector_extra_config={'lmcache.chunk_size': 100, 'lmcache.mp.port': 5555})"
)
GIVEN = (
    ("max_model_len", "131072"),
    ("enforce_eager", "True"),
    ("enable_prefix_caching", "False"),
    ("quantization", "None"),
    ("dtype", "'half'"),
    ("served_model_name", "['a b', 'c']"),
    ("limit_mm_per_prompt", "{'image': 5}"),
    ("kv_transfer_config", CONNECTOR),
    ("speculative_config", "{'method': 'eagle', 'model': None, 'inner': {'a': True, 'b': [1, 2]}}"),
)
COMMAND = "command line"
EDITS = {
    "a flag that is given": ("--max-model-len", "40960", [(COMMAND, "--max-model-len 131072", "--max-model-len 40960")]),
    "a flag that is not": ("--max-num-seqs", "64", [(COMMAND, None, "--max-num-seqs 64")]),
    "a switch": ("--trust-remote-code", "", [(COMMAND, None, "--trust-remote-code")]),
    "a switch that is on": ("--enforce-eager", "", [(COMMAND, "--enforce-eager", "--enforce-eager")]),
    "a switch that is off": ("--enable-prefix-caching", "", [(COMMAND, "--no-enable-prefix-caching", "--enable-prefix-caching")]),
    "to switch it off": ("--no-enforce-eager", "", [(COMMAND, "--enforce-eager", "--no-enforce-eager")]),
    "None is not given": ("--quantization", "fp8", [(COMMAND, None, "--quantization fp8")]),
    "to take it away": ("--dtype", "unset", [(COMMAND, "--dtype half", None)]),
    "a configuration": ("--limit-mm-per-prompt", '{"image": 2}', [(COMMAND, "--limit-mm-per-prompt '{\"image\": 5}'", "--limit-mm-per-prompt '{\"image\": 2}'")]),
    "a key of a configuration": (
        "--kv-transfer-config.kv_role",
        "kv_both",
        [(COMMAND, "--kv-transfer-config '{…, \"kv_role\": \"kv_producer\"}'", "--kv-transfer-config '{…, \"kv_role\": \"kv_both\"}'")],
    ),
    "a key that is not set": ("--kv-transfer-config.kv_rank", "0", [(COMMAND, None, "--kv-transfer-config '{…, \"kv_rank\": 0}'")]),
    "a key of what the log does not show": ("--compilation-config.mode", "0", [(COMMAND, None, "--compilation-config '{\"mode\": 0}'")]),
    "a variable": ("VLLM_HOST_IP", "10.0.0.1", [("environment", None, "VLLM_HOST_IP=10.0.0.1")]),
    "a variable to take away": ("VLLM_PORT", "unset", [("environment", "VLLM_PORT=…", None)]),
    "a flag to take away that is not given": ("--seed", "unset", [(COMMAND, None, None)]),
    "a key to take away that is not given": ("--kv-transfer-config.kv_port", "unset", [(COMMAND, None, None)]),
    "a long configuration to take away": ("--kv-transfer-config", "unset", [(COMMAND, "--kv-transfer-config '{…}'", None)]),
    "a key to take away": (
        "--kv-transfer-config.kv_role",
        "unset",
        [(COMMAND, "--kv-transfer-config '{…, \"kv_role\": \"kv_producer\"}'", None)],
    ),
    "a key with dots": (
        "--kv-transfer-config.kv_connector_extra_config.lmcache.mp.port",
        "6666",
        [
            (
                COMMAND,
                "--kv-transfer-config '{…, \"kv_connector_extra_config\": {…, \"lmcache.mp.port\": 5555}}'",
                "--kv-transfer-config '{…, \"kv_connector_extra_config\": {…, \"lmcache.mp.port\": 6666}}'",
            )
        ],
    ),
    "an LMCache key to take away": (
        "lmcache.remote_url",
        "unset",
        [
            ("LMCache YAML", "remote_url: …", None),
            ("environment", "LMCACHE_REMOTE_URL=…", None),
            ("kv_connector_extra_config", '"lmcache.remote_url": …', None),
        ],
    ),
    "nested configurations are JSON": (
        "--speculative-config",
        "unset",
        [(COMMAND, "--speculative-config '{\"method\": \"eagle\", \"inner\": {\"a\": true, \"b\": [1, 2]}}'", None)],
    ),
    "an LMCache key in the connector's config": (
        "lmcache.chunk_size",
        "256",
        [("kv_connector_extra_config", '"lmcache.chunk_size": 100', '"lmcache.chunk_size": 256')],
    ),
    "an LMCache key wherever it stands": (
        "lmcache.remote_serde",
        "naive",
        [
            ("LMCache YAML", None, "remote_serde: naive"),
            ("environment", None, "LMCACHE_REMOTE_SERDE=naive"),
            ("kv_connector_extra_config", None, '"lmcache.remote_serde": "naive"'),
        ],
    ),
    "the multiprocess connector's key": (
        "lmcache.mp.host",
        "tcp://localhost",
        [("kv_connector_extra_config", None, '"lmcache.mp.host": "tcp://localhost"')],
    ),
}


@pytest.mark.parametrize(("key", "value", "wanted"), EDITS.values(), ids=EDITS)
def test_a_change_is_an_edit_of_what_the_log_shows(key: str, value: str, wanted: list[tuple[object, ...]]) -> None:
    assert list(edits([(key, value)], GIVEN)) == wanted


def test_what_the_log_does_not_show_may_hold_more() -> None:
    """A usage error comes before the arguments are logged; the key stands in a JSON that the operator has."""
    (edit,) = edits([("--kv-transfer-config.kv_role", "kv_both")], ())
    assert edit == (COMMAND, None, "--kv-transfer-config '{…, \"kv_role\": \"kv_both\"}'")


def test_what_is_taken_away_is_named_where_the_log_does_not_show_it() -> None:
    assert edits([("--seed", "unset")], ()) == (Edit(COMMAND, "--seed", None),)
    assert edits([("--kv-transfer-config.kv_port", "unset")], ()) == (
        Edit(COMMAND, "--kv-transfer-config '{…, \"kv_port\": \"…\"}'", None),
    )


@pytest.mark.parametrize(
    ("change", "done"),
    [
        ((("--enforce-eager", ""),), True),
        ((("--max-model-len", "131072"),), True),
        ((("--enforce-eager", ""), ("--max-num-seqs", "64")), False),
        ((("--quantization", "unset"),), False),
        ((("VLLM_X", "1"),), False),
        ((), False),
    ],
)
def test_what_is_set_already(change: tuple[tuple[str, str], ...], *, done: bool) -> None:
    assert is_done(edits(change, GIVEN)) is done


@given(st.text(st.characters(exclude_characters="\0"), min_size=1))
def test_a_value_is_one_word_of_the_shell(text: str) -> None:
    (edit,) = edits([("--model", text)], ()) if text != "unset" else (Edit(COMMAND, None, "--model unset"),)
    assert shlex.split(edit.after or "") == ["--model", text]


@given(st.text("{}()'\"=,: aN", max_size=40), st.sampled_from(["--a", "--a.b", "lmcache.x", "--no-a"]))
def test_arbitrary_arguments_break_nothing(value: str, key: str) -> None:
    assert edits([(key, "1")], [("a", value), ("kv_transfer_config", value)])
