"""Names the package that raised an error which is neither vLLM's nor LMCache's, when only the message is left to tell.

A rule quotes the source named above its group. A sentence that vLLM or LMCache raises as well is in no rule.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from lmdiag.lazy_pattern import lazy
from lmdiag.match.templates import Template, fold


class ForeignRule(NamedTuple):
    """Words of an error that a package other than vLLM and LMCache raises."""

    package: str
    """Importable name; "python" for the interpreter's own errors, a module's name for the standard library's."""
    types: tuple[str, ...]
    """Exception names without module; empty: any."""
    template: str
    """Text with {named} holes, see `lmdiag.match.templates`. A hole named in `_TAKES` takes only what stands there."""


_VALUE = ("ValueError", "ValidationError")  # pydantic reports what a validator raises as its own ValidationError
_LIBRARY = ("ImportError", "OSError")
_CUDA = ("RuntimeError", "AcceleratorError")
_MEMORY = ("OutOfMemoryError", "RuntimeError")
_NCCL = ("DistBackendError", "RuntimeError")

RULES: tuple[ForeignRule, ...] = (
    # transformers: models/auto/configuration_auto.py, tokenization_auto.py, auto_factory.py
    ForeignRule(
        "transformers",
        (),
        "The checkpoint you are trying to load has model type `{model_type}` but Transformers does not recognize this "
        "architecture. {advice}",
    ),
    ForeignRule("transformers", (), "Unrecognized model in {model}. Should have a `model_type` key in its {rest}"),
    ForeignRule("transformers", (), "Unrecognized configuration class <class '{config}'> {rest}"),
    ForeignRule("transformers", (), "Tokenizer class {name} does not exist or is not currently imported."),
    # transformers: configuration_utils.py, tokenization_utils_base.py, image_processing_base.py
    ForeignRule(
        "transformers", ("OSError",), "Can't load the configuration of '{model}'. If you were trying to load it{rest}"
    ),
    ForeignRule(
        "transformers", ("OSError",), "Can't load {kind} for '{model}'. If you were trying to load it from {rest}"
    ),
    ForeignRule("transformers", ("OSError",), "It looks like the config file at '{file}' is not a valid JSON file."),
    # transformers: tokenization_utils_tokenizers.py (4.x: tokenization_utils_fast.py), modeling_gguf_pytorch_utils.py
    ForeignRule("transformers", (), "Couldn't instantiate the backend tokenizer from one of: {rest}"),
    ForeignRule("transformers", (), "GGUF model with architecture {architecture} is not supported yet."),
    # transformers: utils/hub.py
    ForeignRule(
        "transformers",
        ("OSError",),
        "{repo} is not a local folder and is not a valid model identifier listed on {rest}",
    ),
    ForeignRule(
        "transformers", ("OSError",), "{repo} is not a valid git identifier (branch name, tag name or commit id) {rest}"
    ),
    ForeignRule("transformers", ("OSError",), "{repo} does not appear to have a file named {file}. Checkout {rest}"),
    ForeignRule("transformers", (), "You are trying to access a gated repo. Make sure to have access to it at {rest}"),
    ForeignRule("transformers", (), "We couldn't connect to '{endpoint}' to load {rest}"),
    # transformers: dynamic_module_utils.py
    ForeignRule(
        "transformers",
        (),
        "The repository {model} contains custom code which must be executed to correctly load {rest}",
    ),
    ForeignRule(
        "transformers", (), "The repository {model} references custom code contained in {upstream} which must be {rest}"
    ),
    ForeignRule(
        "transformers", (), "Loading {repo} requires you to execute the configuration file in that repo {rest}"
    ),
    # huggingface_hub: utils/_validators.py
    ForeignRule(
        "huggingface_hub",
        (),
        "Repo id must be in the form 'repo_name' or 'namespace/repo_name': '{name}'. Use `repo_type` argument if needed.",
    ),
    ForeignRule("huggingface_hub", (), "Repo id must use alphanumeric chars{rest}"),
    # huggingface_hub: utils/_http.py; a request id stands behind the status, a full stop if there is none
    ForeignRule("huggingface_hub", (), "{count} Client Error{request} Repository Not Found for url: {url}"),
    ForeignRule("huggingface_hub", (), "{count} Client Error{request} Cannot access gated repo for url {url}"),
    ForeignRule("huggingface_hub", (), "{count} Client Error{request} Revision Not Found for url: {url}"),
    ForeignRule("huggingface_hub", (), "{count} Client Error{request} Entry Not Found for url: {url}"),
    ForeignRule("huggingface_hub", (), "Cannot reach {url}: offline mode is enabled. To disable it, {rest}"),
    # huggingface_hub: file_download.py, _snapshot_download.py
    ForeignRule(
        "huggingface_hub",
        (),
        "Cannot find the requested files in the disk cache and outgoing traffic has been disabled. {rest}",
    ),
    ForeignRule(
        "huggingface_hub",
        (),
        "Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and {rest}",
    ),
    ForeignRule("huggingface_hub", (), "An error happened while trying to locate the {files} on the Hub{rest}"),
    # safetensors: src/tensor.rs, bindings/python/src/lib.rs
    ForeignRule("safetensors", (), "Error while deserializing header: {reason}"),
    ForeignRule("safetensors", ("SafetensorError",), "File does not contain tensor {name}"),
    ForeignRule("safetensors", ("FileNotFoundError",), "No such file or directory: {path}.safetensors"),
    # tokenizers: serde's words for the enums of src/models, normalizers, pre_tokenizers, processors and decoders
    ForeignRule(
        "tokenizers", (), "data did not match any variant of untagged enum {enum} at line {line} column {column}"
    ),
    # pydantic: pydantic_core's src/errors/types.rs; a validator's "Value error, …" is another package's
    ForeignRule("pydantic", ("ValidationError",), "{count} validation {errors} for {model} Input should be {rest}"),
    ForeignRule("pydantic", ("ValidationError",), "{count} validation {errors} for {model} Field required{rest}"),
    ForeignRule(
        "pydantic", ("ValidationError",), "{count} validation {errors} for {model} Extra inputs are not permitted{rest}"
    ),
    ForeignRule(
        "pydantic", ("ValidationError",), "{count} validation {errors} for {model} Unexpected keyword argument{rest}"
    ),
    # torch: c10/cuda/CUDACachingAllocator.cpp, CUDAException.cpp, CUDAFunctions.cpp (ROCm's build says HIP for CUDA)
    ForeignRule("torch", _MEMORY, "CUDA out of memory. Tried to allocate {rest}"),
    ForeignRule("torch", _MEMORY, "HIP out of memory. Tried to allocate {rest}"),
    ForeignRule("torch", _CUDA, "CUDA error: {reason}"),
    ForeignRule("torch", _CUDA, "HIP error: {reason}"),
    ForeignRule("torch", (), "CUDA driver initialization failed, you might not have a CUDA gpu."),
    ForeignRule("torch", (), "Found no NVIDIA driver on your system. {rest}"),
    ForeignRule("torch", (), "The NVIDIA driver on your system is too old (found version {version}). {rest}"),
    ForeignRule("torch", ("RuntimeError",), "No CUDA GPUs are available"),
    # torch: cuda/__init__.py
    ForeignRule("torch", (), "Torch not compiled with CUDA enabled"),
    ForeignRule("torch", (), "Cannot re-initialize CUDA in forked subprocess. {rest}"),
    # torch: aten/src/ATen/native/transformers/sdp_utils.cpp, native/cuda/Blas.cpp, TensorIterator.cpp
    ForeignRule("torch", ("RuntimeError",), "No available kernel. Aborting execution."),
    ForeignRule("torch", (), "Expected all tensors to be on the same device{rest}"),
    ForeignRule("torch", (), "mat1 and mat2 shapes cannot be multiplied ({shapes})"),
    # torch: torch/csrc/utils/tensor_new.cpp
    ForeignRule("torch", _VALUE, "both buffer length ({length}) and count ({items}) must not be 0"),
    # torch: torch/csrc/distributed/c10d/NCCLUtils.hpp, socket.cpp, torch/csrc/cuda/nccl.cpp.
    # vLLM's pynccl_wrapper.py says "NCCL error: …".
    ForeignRule("torch", _NCCL, "NCCL error in: {file}:{line}, {rest}"),
    ForeignRule("torch", _NCCL, "NCCL Error {number}: {reason}"),
    ForeignRule("torch", (), "The server socket has failed to listen on any local network address.{rest}"),
    # triton: runtime/errors.py, runtime/driver.py
    ForeignRule("triton", (), "out of resource: {name}, Required: {required}, Hardware limit: {limit}. {rest}"),
    ForeignRule("triton", (), "{count} active drivers ({drivers}). There should only be one."),
    # ray: exceptions.py, _private/services.py
    ForeignRule("ray", (), "The actor died unexpectedly before finishing this task."),
    ForeignRule("ray", (), "The actor died because of an error raised in its creation task{rest}"),
    ForeignRule("ray", (), "The worker died unexpectedly while executing this task. {rest}"),
    ForeignRule("ray", (), "Could not find any running Ray instance. {rest}"),
    # zmq: sugar/socket.py adds the address to the words of libzmq
    ForeignRule("zmq", (), "Address already in use (addr={address})"),
    # urllib3: exceptions.py; requests' adapters.py raises it again as an error of its own
    ForeignRule("urllib3", ("MaxRetryError",), "{pool}: Max retries exceeded with url: {url} (Caused by {reason}"),
    ForeignRule("requests", (), "{pool}: Max retries exceeded with url: {url} (Caused by {reason}"),
    # json: decoder.py, encoder.py
    ForeignRule("json", (), "Expecting {token}: line {line} column {column} (char {position})"),
    ForeignRule("json", (), "Extra data: line {line} column {column} (char {position})"),
    ForeignRule("json", (), "Unterminated string starting at: line {line} column {column} (char {position})"),
    ForeignRule("json", _VALUE, "Out of range float values are not JSON compliant"),
    ForeignRule("json", _VALUE, "Out of range float values are not JSON compliant: {value}"),
    # enum: enum.py
    ForeignRule("enum", _VALUE, "{literal} is not a valid {class}"),
    # logging: __init__.py, config.py
    ForeignRule("logging", _VALUE, "Unknown level: {level}"),
    ForeignRule("logging", _VALUE, "Formatting field not found in record: {field}"),
    ForeignRule("logging", _VALUE, "Unable to configure {part} '{name}'"),
    ForeignRule("logging", _VALUE, "Unable to configure root logger"),
    # importlib: _bootstrap.py. vLLM's import_from_path says the same of a plugin file, but up to 0.11.0 only, and rarely.
    ForeignRule("importlib", ("ModuleNotFoundError", "ImportError"), "No module named '{module}'"),
    ForeignRule(
        "importlib", ("ModuleNotFoundError", "ImportError"), "No module named '{name}'; '{parent}' is not a package"
    ),
    # asyncio: base_events.py; socket: socketmodule.c
    ForeignRule("asyncio", (), "[Errno {number}] error while attempting to bind on address {rest}"),
    ForeignRule("socket", (), "[Errno 98] Address already in use"),
    ForeignRule("socket", (), "[Errno -{number}] {reason}"),
    # python: Objects/exceptions.c, longobject.c, floatobject.c, Python/ceval.c; a library's words are the loader's
    ForeignRule("python", (), "[Errno {number}] {reason}"),
    ForeignRule("python", (), "invalid literal for int() with base {base}: {value}"),
    ForeignRule("python", (), "could not convert string to float: {value}"),
    ForeignRule("python", (), "not enough values to unpack (expected {expected}, got {got})"),
    ForeignRule("python", (), "too many values to unpack (expected {expected})"),
    ForeignRule("python", ("ImportError",), "cannot import name '{name}' from {module}"),
    ForeignRule("python", _LIBRARY, "{library}: cannot open shared object file: No such file or directory"),
    ForeignRule("python", _LIBRARY, "{library}: undefined symbol: {symbol}"),
)

_TAKES = {
    "class": lazy(r"(?:\w+\.)*[A-Z]\w*[a-z]\w*"),
    "count": lazy(r"\d+"),
    "library": lazy(r"\S+\.so[\d.]*"),
    "literal": lazy(r"'[^']*'|\"[^\"]*\"|-?[\d.]+|None|True|False"),
    "pool": lazy(r"(?:\(MaxRetryError\(.)?HTTPS?ConnectionPool\(host='[^']*', port=\w+\)"),
    "repo": lazy(r"\S+"),
    "token": lazy(r"value|property name enclosed in double quotes|'[:,]' delimiter"),
}
"""What a hole takes, by its name: else a message that ends with another's words (`cannot load it: …`) would fit too."""
_MAX_TEXT = 4000


def raised_by(type: str | None, message: str) -> str | None:
    """Return the package that raises such an error, or None if no rule knows it.

    `type` may be dotted; None fits every rule. Of a message of several lines the first one alone may fit.
    """
    name = type.rpartition(".")[2] if type else None
    head = message[:_MAX_TEXT].strip()
    texts = dict.fromkeys((fold(head), fold(head.partition("\n")[0])))
    for rule, template in _compiled():
        if name and rule.types and name not in rule.types:
            continue
        if any(_fits(template, text) for text in texts):
            return rule.package
    return None


@cache
def _compiled() -> tuple[tuple[ForeignRule, Template], ...]:
    return tuple((rule, Template(rule.template)) for rule in RULES)


def _fits(template: Template, text: str) -> bool:
    fields = template.match_folded(text)
    return fields is not None and all(_TAKES[name].fullmatch(value) for name, value in fields if name in _TAKES)
