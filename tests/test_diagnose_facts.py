from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.diagnose.facts import split_arguments, update
from lmdiag.model import Facts, Origin, Record


def facts(*texts: str) -> Facts:
    found = Facts()
    for number, text in enumerate(texts, 1):
        found = update(found, Record(Origin("s", number, number), "INFO", "x.py", text))
    return found


LOGO = " ▄▄ ▄█ █     █     █ ▀▄▀ █  version {}\n  █▄█▀ █     █     █     █  model   {}"
VERSIONS = {
    "0.4 to 0.9": ("vLLM API server version 0.6.5", "0.6.5"),
    "the logo": (LOGO.format("0.19.0", "Qwen/Qwen3"), "0.19.0"),
    "without the logo": ("vLLM server version 0.26.0, serving model Qwen/Qwen3", "0.26.0"),
    "an engine of 0.5": ("Initializing an LLM engine (v0.5.4) with config: model='m', tokenizer='m'", "0.5.4"),
    "a V0 engine": ("Initializing a V0 LLM engine (v0.7.3) with config: model='m'", "0.7.3"),
    "a V1 engine": ("Initializing a V1 LLM engine (v0.10.2) with config: model='m', speculative_config=None", "0.10.2"),
    "a development build": ("vLLM API server version 0.15.2rc1.dev93+g11a4c9d30", "0.15.2rc1.dev93+g11a4c9d30"),
    "another one": ("vLLM API server version 0.16.0.dev0", "0.16.0.dev0"),
    "0.3 said none": ("Initializing an LLM engine with config: model='m'", None),
    "a version of something else": ("Using transformers version 4.51.3", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "version"), VERSIONS.values(), ids=VERSIONS)
def test_the_version_of_vllm(text: str, version: str | None) -> None:
    assert facts(text).vllm_version == version


MODELS = {
    "the logo": (LOGO.format("0.19.0", "Qwen/Qwen3"), "Qwen/Qwen3"),
    "without the logo": ("vLLM server version 0.26.0, serving model Qwen/Qwen3", "Qwen/Qwen3"),
    "an engine": ("Initializing a V1 LLM engine (v0.10.2) with config: model='/m/a b', tokenizer='m'", "/m/a b"),
    "args": ("args: Namespace(host=None, port=8000, model='Qwen/Qwen3', task='auto')", "Qwen/Qwen3"),
    "non-default args": ("non-default args: {'model_tag': 'Qwen/Qwen3', 'model': 'Qwen/Qwen3', 'port': 1}", "Qwen/Qwen3"),
    "only a tag": ("non-default args: {'model_tag': 'Qwen/Qwen3'}", "Qwen/Qwen3"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "model"), MODELS.values(), ids=MODELS)
def test_the_model(text: str, model: str) -> None:
    assert facts(text).model == model


def test_other_lines() -> None:
    found = facts(
        "Resolved architecture: DeepseekV3ForCausalLM",
        "Automatically detected platform cuda.",
        "LMCache v0.3.9 is ready",
    )
    assert (found.architecture, found.platform, found.lmcache_version) == ("DeepseekV3ForCausalLM", "cuda", "0.3.9")


def test_what_is_said_later_replaces_what_was_said_before() -> None:
    found = facts("vLLM API server version 0.9.0", "Resolved architecture: A", "vLLM API server version 0.9.1")
    assert (found.vllm_version, found.architecture) == ("0.9.1", "A")


def test_arguments_keep_their_order_and_are_reprs() -> None:
    found = facts("non-default args: {'model': 'm', 'max_model_len': 2048, 'kv_transfer_config': KVTransferConfig(kv_connector='L', kv_role='kv_both'), 'x': <Mode.A: 1>}")  # fmt: skip
    assert found.arguments == (
        ("model", "'m'"),
        ("max_model_len", "2048"),
        ("kv_transfer_config", "KVTransferConfig(kv_connector='L', kv_role='kv_both')"),
        ("x", "<Mode.A: 1>"),
    )


@pytest.mark.parametrize("name", ["hf_token", "api_key", "ssl_keyfile_password"])
def test_secrets_among_the_arguments_are_hidden(name: str) -> None:
    found = facts(f"non-default args: {{'model': 'm', '{name}': 'Zecret-99', 'port': 8000}}")
    assert "Zecret-99" not in str(found)
    assert dict(found.arguments)["port"] == "8000"


def test_a_password_in_a_nested_value_is_hidden() -> None:
    found = facts(
        "non-default args: {'kv_transfer_config': KVTransferConfig(extra={'remote_url': 'redis://u:Zecret-99@h:1'})}"
    )
    assert "Zecret-99" not in str(found)


def test_a_long_value_is_cut_and_their_number_is_bounded() -> None:
    found = facts("non-default args: " + repr({f"a{number}": "x" * 5000 for number in range(200)}))
    assert len(found.arguments) < 200
    assert all(len(value) < 500 for _, value in found.arguments)


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)
_NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True)


@given(st.dictionaries(_NAMES, _VALUES, max_size=6))
@settings(deadline=None)
def test_splitting_is_the_inverse_of_repr(arguments: dict[str, Any]) -> None:
    wanted = [(name, repr(value)) for name, value in arguments.items()]
    assert split_arguments(repr(arguments)[1:-1]) == wanted


@given(st.dictionaries(_NAMES, _VALUES, max_size=6))
@settings(deadline=None)
def test_splitting_is_the_inverse_of_a_namespaces_repr(arguments: dict[str, Any]) -> None:
    wanted = [(name, repr(value)) for name, value in arguments.items()]
    assert split_arguments(", ".join(f"{name}={value}" for name, value in wanted)) == wanted


@given(st.text())
@settings(deadline=None)
def test_any_text_is_survived(text: str) -> None:
    assert all(name.isidentifier() for name, _ in split_arguments(text))
