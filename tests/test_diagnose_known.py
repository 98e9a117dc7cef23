from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.diagnose.known import inner_arguments, known_values, unquoted
from lmdiag.model import ClueSeen, Facts

CONNECTOR = (
    "KVTransferConfig(kv_connector='LMCacheConnectorV1', engine_id='e', kv_buffer_size=1000000000.0, kv_role='kv_both', "
    "kv_connector_extra_config={'lmcache.chunk_size': 256, 'deep': {'x': {'y': {'z': 1}}}})"
)


def test_everything_has_a_name() -> None:
    facts = Facts(
        vllm_version="0.11.0",
        platform="cuda",
        arguments=(("dtype", "'half'"), ("kv_transfer_config", CONNECTOR), ("quantization", "None")),
    )
    seen = ClueSeen("memory", 7, "Available KV cache memory: 3 GiB", (("gib", "3"),))
    known = known_values([("blocks", "12")], facts, "died", [seen])
    assert known["blocks"] == known["field.blocks"] == "12"
    assert (known["vllm_version"], known["platform"], known["outcome"]) == ("0.11.0", "cuda", "died")
    assert (known["log.memory"], known["log.memory.gib"]) == ("Available KV cache memory: 3 GiB", "3")
    assert known["argument.dtype"] == "half"
    assert known["argument.quantization"] == "None"
    assert known["argument.kv_transfer_config.kv_connector"] == "LMCacheConnectorV1"
    assert known["argument.kv_transfer_config.kv_role"] == "kv_both"
    assert "lmcache_version" not in known
    assert "model" not in known


@given(st.text("{}()'\",:= ab", max_size=50))
def test_arbitrary_arguments_are_taken_apart_without_harm(text: str) -> None:
    assert known_values([], Facts(arguments=(("a", text),)), "died", [])["argument.a"] == unquoted(text)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("{'image': 2, 'video': 0}", [("image", "2"), ("video", "0")]),
        ("CompilationConfig(mode=3, sizes=[1, 2])", [("mode", "3"), ("sizes", "[1, 2]")]),
        ("{}", []),
        ("'a (b)'", None),
        ("[1, 2]", None),
        ("0.9", None),
        ("", None),
        ("torch.float16", None),
    ],
)
def test_configurations_are_told_from_values(value: str, wanted: list[tuple[str, str]] | None) -> None:
    assert inner_arguments(value) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"), [("'half'", "half"), ('"a b"', "a b"), ("<Mode.X: 3>", "3"), ("<A.B: 'c'>", "c"), ("True", "True")]
)
def test_a_repr_without_its_quotes(value: str, wanted: str) -> None:
    assert unquoted(value) == wanted
