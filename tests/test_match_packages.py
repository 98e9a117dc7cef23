from __future__ import annotations

import pytest

from lmdiag.match.packages import Located, frame_is_hidden, locate, raising_frame
from lmdiag.model import Frame

SITE = "/opt/venv/lib/python3.12/site-packages/"
FILES = {
    "installed": (SITE + "vllm/v1/core.py", "vllm", "vllm/v1/core.py"),
    "of a distribution": ("/usr/lib/python3/dist-packages/torch/cuda/__init__.py", "torch", "torch/cuda/__init__.py"),
    "a module of its own": (SITE + "typing_extensions.py", "typing_extensions", "typing_extensions.py"),
    "a checkout": ("/src/vllm/v1/core.py", "vllm", "vllm/v1/core.py"),
    "a checkout called like the package": ("/src/vllm/vllm/v1/core.py", "vllm", "vllm/v1/core.py"),
    "a checkout of a release": ("/src/vllm-0.9.1/vllm/envs.py", "vllm", "vllm/envs.py"),
    "a checkout of LMCache": ("/srv/0.3.9/lmcache/integration/vllm/vllm_v1_adapter.py", "lmcache", "lmcache/integration/vllm/vllm_v1_adapter.py"),
    "a plugin beside it": ("/workspace/vllm/vllm_ascend/worker/w.py", "vllm_ascend", "vllm_ascend/worker/w.py"),
    "a model's own code": ("/root/.cache/huggingface/modules/transformers_modules/org/m/modeling_x.py", "transformers_modules", "transformers_modules/org/m/modeling_x.py"),
    "relative": ("lmcache/v1/manager.py", "lmcache", "lmcache/v1/manager.py"),
    "LMCache's integration in vLLM": (SITE + "vllm/lmcache/adapter.py", "vllm", "vllm/lmcache/adapter.py"),
    "Windows": (r"C:\venv\Lib\site-packages\vllm\v1\core.py", "vllm", "vllm/v1/core.py"),
    "the standard library": ("/usr/lib/python3.12/json/decoder.py", "json", "json/decoder.py"),
    "of Red Hat": ("/usr/lib64/python3.12/json/decoder.py", "json", "json/decoder.py"),
    "without the lock": ("/usr/lib/python3.13t/enum.py", "enum", "enum.py"),
    "of an environment called vllm": ("/opt/conda/envs/vllm/lib/python3.12/json/decoder.py", "json", "json/decoder.py"),
    "a package of an environment called vllm": ("/srv/vllm/lib/python3.12/site-packages/ray/a.py", "ray", "ray/a.py"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "package", "path"), FILES.values(), ids=FILES)
def test_the_package_of_a_frame(file: str, package: str, path: str) -> None:
    assert locate(Frame(file, 7, "f")) == Located(package, path, "f", 7)


@pytest.mark.parametrize("file", ["/srv/app.py", "<string>", "", "/srv/vllm-fork/core.py", "/srv/myvllm/core.py", "<frozen runpy>", "/root/.cache/vllm/torch_compile_cache/ab/cde.py", "/opt/vllm/start.py", "/opt/vllm/bin/vllm", "/home/u/vllm/.venv/bin/vllm"])
def test_a_file_of_no_package(file: str) -> None:
    assert locate(Frame(file, 7, "f")) is None
    assert raising_frame([Frame(file, 7, "f")]) is None


VLLM = Frame(SITE + "vllm/a.py", 3, "f")
HIDDEN = {
    "pydantic": SITE + "pydantic/_internal/_dataclasses.py",
    "a future": "/usr/lib/python3.12/concurrent/futures/_base.py",
    "a future of Red Hat": "/usr/lib64/python3.12/concurrent/futures/_base.py",
    "a pool": "/usr/lib/python3.12/multiprocessing/pool.py",
    "a future of an environment called vllm": "/envs/vllm/lib/python3.12/concurrent/futures/_base.py",
}


@pytest.mark.parametrize("file", HIDDEN.values(), ids=HIDDEN)
def test_some_packages_hide_where_an_error_was_raised(file: str) -> None:
    frames = [VLLM, Frame(file, 9, "result")]
    assert frame_is_hidden(frames)
    assert raising_frame(frames) is None


def test_a_pool_may_raise_an_error_of_its_own() -> None:
    frames = [VLLM, Frame("/usr/lib/python3.12/concurrent/futures/thread.py", 171, "submit")]
    assert not frame_is_hidden(frames)
    assert raising_frame(frames) == Located("concurrent", "concurrent/futures/thread.py", "submit", 171)


def test_the_last_frame_raised() -> None:
    frames = [Frame(SITE + "torch/a.py", 9, "g"), VLLM]
    assert not frame_is_hidden(frames)
    assert raising_frame(frames) == Located("vllm", "vllm/a.py", "f", 3)
    assert raising_frame(()) is None
    assert not frame_is_hidden(())


def test_an_import_fails_where_it_is_written() -> None:
    machinery = [Frame("/usr/lib64/python3.12/importlib/__init__.py", 90, "import_module"), Frame("<frozen importlib._bootstrap>", 1387, "_gcd_import")]
    assert raising_frame([VLLM, *machinery]) == Located("vllm", "vllm/a.py", "f", 3)
    assert raising_frame(machinery) is None
