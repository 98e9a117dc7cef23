from __future__ import annotations

from textwrap import dedent

import pytest

from lmdiag.catalog.settings import settings

SOURCES = {
    "a flag": ("vllm/engine/arg_utils.py", 'parser.add_argument("--tensor-parallel-size", "-tp", type=int)', ["flag --tensor-parallel-size"]),
    "in the old spelling": ("vllm/entrypoints/openai/cli_args.py", 'p.add_argument("--max_num_seqs")', ["flag --max-num-seqs"]),
    "of another program": ("vllm/benchmarks/serve.py", 'p.add_argument("--dataset")', []),
    "of the frontend": (
        "vllm/entrypoints/openai/cli_args.py",
        "class FrontendArgs:\n    chat_template: str | None = None\n    def f(self): x: int = 1",
        ["flag --chat-template"],
    ),
    "of LMCache's server": ("lmcache/v1/multiprocess/config.py", 'p.add_argument("--l1-size-gb")', ["flag --l1-size-gb"]),
    "fields of a configuration": (
        "vllm/config/kv_transfer.py",
        "class KVTransferConfig:\n    kv_role: str | None = None\n    other = 1\nclass Helper:\n    x: int",
        ["field KVTransferConfig.kv_role"],
    ),
    "the table of variables": (
        "vllm/envs.py",
        'environment_variables: dict = {"VLLM_PORT": lambda: 1, "CMAKE_BUILD_TYPE": 2, "short": 3, **more}',
        ["env CMAKE_BUILD_TYPE", "env VLLM_PORT"],
    ),
    "variables that are read": (
        "vllm/any.py",
        "os.environ['A_B']; os.getenv(\"C_D\", 1); os.environ.get(\n  'HOME'); 'E_F' in os.environ",
        ["env A_B", "env C_D", "env E_F", "env HOME"],
    ),
    "LMCache's table": ("lmcache/v1/config.py", '_CONFIG_DEFINITIONS: dict = {"chunk_size": {"type": int}}', ["key chunk_size"]),
    "LMCache's old class": ("lmcache/config.py", "class LMCacheEngineConfig:\n    chunk_size: int", ["key chunk_size"]),
    "what the connector is handed": ("vllm/x.py", 'c.get("lmcache.mp.host", 1); log("lmcache.v1.module")', ["key mp.host"]),
    "negation": ("vllm/engine/arg_utils.py", "action=argparse.BooleanOptionalAction", ["flag --no-*"]),
    "no Python": ("vllm/config/x.py", "class XConfig(:\n os.getenv('A_B')", ["env A_B"]),
}


@pytest.mark.parametrize(("path", "text", "wanted"), SOURCES.values(), ids=SOURCES)
def test_the_settings_of_a_source(path: str, text: str, wanted: list[str]) -> None:
    assert list(settings({path: dedent(text)})) == wanted
