from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.diagnose.redact import HIDDEN, redact, redacted

WORD = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=16, max_size=40).map(lambda text: "Z9q" + text)  # fmt: skip
SHAPES = {
    "args of 0.6": "args: Namespace(host=None, api_key='{}', port=8000)",
    "non-default args": "non-default args: {{'model': 'm', 'hf_token': '{}', 'port': 8000}}",
    "several API keys": "non-default args: {{'api_key': ['{}', 'other'], 'port': 1}}",
    "a flag": "vllm serve m --api-key {} --port 8000",
    "a flag with a sign": "vllm serve m --hf-token={} --port 8000",
    "an environment variable": "VLLM_API_KEY={} vllm serve m",
    "AWS": "AWS_SECRET_ACCESS_KEY={}",
    "a token of a header": "header: Bearer {}",
    "a header in a dictionary": "{{'authorization': 'Bearer {}'}}",
    "JSON": '{{"api_key": "{}", "x": 1}}',
    "a password in a URL": "remote_url='redis://user:{}@10.0.0.1:6379/0'",
    "a password with an at sign in a URL": "s3://user:p@{}@host/m",
    "a password with a slash in a URL": "https://user:pa/{}@host/m",
    "a password alone in a URL": "lm://:{}@host:65432",
    "a token in a URL": "https://host/x?token={}",
    "a token of Hugging Face": "401 for hf_{}",
    "a key of OpenAI": "Incorrect API key provided: sk-{}",
    "a token of GitHub": "ghp_{}",
    "a key file's password": "ssl_keyfile_password='{}'",
    "YAML": "hf_token: {}",
    "a nested config": "KVTransferConfig(kv_connector='L', kv_connector_extra_config={{'secret_key': '{}'}})",
    "a prompt": "Received request cmpl-1: prompt: '{}', params: SamplingParams(n=1)",
    "a chat": "Request x details: messages: [{{'role': 'user', 'content': '{}'}}]",
    "a body": "Request cmpl-1 JSON body: {{'prompt': '{}'}}",
    "pydantic's input": "Value error, x [type=value_error, input_value='{}', input_type=str]",
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@given(secret=WORD)
@settings(deadline=None)
def test_a_secret_never_survives(shape: str, secret: str) -> None:
    text = redact(shape.format(secret))
    assert secret not in text
    assert HIDDEN in text


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@given(secret=WORD)
@settings(deadline=None)
def test_redacting_twice_changes_nothing(shape: str, secret: str) -> None:
    once = redact(shape.format(secret))
    assert redact(once) == once


@given(st.lists(st.sampled_from(sorted(SHAPES.values())), min_size=2, max_size=4), WORD)
@settings(deadline=None)
def test_secrets_side_by_side(shapes: list[str], secret: str) -> None:
    assert secret not in redact(" ; ".join(shape.format(secret) for shape in shapes))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=8))
@settings(deadline=None)
def test_a_quoted_secret_of_any_characters(secret: str) -> None:
    """The value of an argument is a Python repr, whatever characters the key has."""
    secret = "Z9q" + secret
    assert repr(secret)[1:-1] not in redact(f"{{'hf_token': {secret!r}, 'port': 8000}}")


@given(st.text(max_size=200))
@settings(deadline=None)
def test_any_text_is_survived_and_redacted_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


KEPT = {
    "a message": "No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
    "a field that only sounds like it": "max_num_batched_tokens=8192, max_tokens=0, tokenizer='m', num_kv_heads=8, key_cache=3",
    "no key": "non-default args: {'model': 'm', 'api_key': None, 'hf_token': None}",
    "vLLM's tokens": "The model's max seq len (4096) is larger than the maximum number of tokens (2048)",
    "a URL without a password": "https://huggingface.co/m/resolve/main/config.json",
    "a host with a port": "tcp://10.0.0.1:29500",
    "a path": "/opt/venv/lib/python3.12/site-packages/vllm/v1/core/kv_cache_utils.py",
    "a model": "model='deepseek-ai/DeepSeek-V3'",
    "pydantic's arguments": "[type=value_error, input_value=ArgsKwargs((), {'model': 'm'}), input_type=ArgsKwargs]",
    "a frame": '  File "/a/x.py", line 1, in tokenize',
    "a KeyError": "KeyError: 'model.layers.0.weight'",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_what_stands_around_a_secret_stays() -> None:
    text = redact("args: Namespace(host=None, api_key='abc', port=8000)")
    assert text.startswith("args: Namespace(host=None, api_key=")
    assert text.endswith(", port=8000)")


def test_the_work_is_bounded() -> None:
    """Texts that make patterns go back and forth; quadratic work would take minutes."""
    for piece in ("token=", "prompt: '", "a://b:", "messages: [", "--api-key ", "eyJaaaaaaaaa."):
        redact(piece * 5_000)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer SECRETsecret12",
        "'authorization': 'Basic SECRETsecret12', 'x': 1",
        "GET /x?part=1&X-Amz-Signature=SECRETsecret12&y=2",
        "{'api_key': ['a]bSECRETsecret12', 'c']}",
        "api_key=b'SECRETsecret12'",
        "{'tokens': ['SECRETsecret12']}",
        "DefaultEndpointsProtocol=https;AccountKey=SECRETsecret12;x",
        "https://SECRETsecret12@github.com/x",
        "cookie: session=SECRETsecret12; path=/",
        "authToken=SECRETsecret12",
        "--hf-token SECRETsecret12 --port 1",
        "hf_token='SECRETsecret12",
        "-----BEGIN PRIVATE KEY-----\nSECRETsecret12\n-----END PRIVATE KEY-----",
        "prompt: 'SECRETsecret12 that was cut",
        "prompt_token_ids: [[1, 2], [SECRETsecret12, 4]], x",
        "input_value='SECRETsecret12",
        "messages=[{'role': 'user', 'content': 'it\\'s SECRETsecret12'}], model='m'",
        "JSON body: {'a': 'b'}\n  SECRETsecret12",
    ],
)
def test_no_shape_keeps_its_secret(text: str) -> None:
    """Headers, lists, byte strings, query parameters, connection strings, flags, and literals that were cut off."""
    assert "SECRETsecret12" not in redact(text)


def test_sizes_and_flags_stay() -> None:
    """Numbers of tokens, sizes and flags are what the advice is about."""
    text = "max_tokens=32 prompt_tokens: 5, --max-model-len 4096 (parameter=max_tokens, value=3) keys: 4, api_key=None"
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "limit", "wanted"),
    [
        ("abc", 3, "abc"),
        ("abcdef", 3, "abc […3 more characters]"),
        ("x" * 1000, 3, "xxx […997 more characters]"),
        ("", 9, ""),
        ("hf_token: abcdef", 100, "hf_token: [redacted]"),
    ],
)
def test_a_long_text_says_how_much_is_missing(text: str, limit: int, wanted: str) -> None:
    assert redacted(text, limit) == wanted


@given(WORD, st.sampled_from(sorted(SHAPES.values())), st.integers(60, 200))
@settings(deadline=None)
def test_where_a_text_is_cut_no_secret_survives(secret: str, shape: str, limit: int) -> None:
    assert secret not in redacted(" ; ".join([shape.format(secret)] * 3), limit)
