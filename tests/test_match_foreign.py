from __future__ import annotations

import pytest

from lmdiag.match.foreign import RULES, raised_by
from lmdiag.match.templates import Template

DOES_NOT_RECOGNIZE = (
    "The checkpoint you are trying to load has model type `qwen2_5_vl` but Transformers does not recognize this "
    "architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is out "
    "of date.\n\nYou can update Transformers with the command `pip install --upgrade transformers`. If this does not "
    "work, and the checkpoint is very new, then there may not be a release version that supports this model yet."
)
RETRIES = (
    "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/org/model (Caused by "
    "NameResolutionError(\"<urllib3.connection.HTTPSConnection object at 0x7f1>: Failed to resolve 'huggingface.co'\"))"
)
KNOWN = [
    ("ValueError", DOES_NOT_RECOGNIZE, "transformers"),
    ("ValueError", "Unrecognized model in /models/x. Should have a `model_type` key in its config.json.", "transformers"),
    ("ValueError", "Unrecognized model in org/x. Should have a `model_type` key in its config.json, or contain one of the following strings in its name: albert, align", "transformers"),
    ("ValueError", "Unrecognized configuration class <class 'transformers.models.clip.configuration_clip.CLIPConfig'> for this kind of AutoModel: AutoModelForCausalLM.\nModel type should be one of ApertusConfig.", "transformers"),
    ("ValueError", "Unrecognized configuration class <class 'transformers_modules.x.Config'> to build an AutoTokenizer.\nModel type should be one of AlbertConfig.", "transformers"),
    ("ValueError", "Tokenizer class TokenizersBackend does not exist or is not currently imported.", "transformers"),
    ("OSError", "Can't load the configuration of '/models/x'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name. Otherwise, make sure '/models/x' is the correct path to a directory containing a config.json file", "transformers"),
    ("OSError", "Can't load tokenizer for 'org/x'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.", "transformers"),
    ("OSError", "Can't load image processor for 'org/x'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.", "transformers"),
    ("OSError", "It looks like the config file at '/models/x/config.json' is not a valid JSON file.", "transformers"),
    ("ValueError", "Couldn't instantiate the backend tokenizer from one of: \n(1) a `tokenizers` library serialization file, \n(2) a slow tokenizer instance to convert or", "transformers"),
    ("ValueError", "GGUF model with architecture qwen3moe is not supported yet.", "transformers"),
    ("OSError", "org/x is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token", "transformers"),
    ("OSError", "v9 is not a valid git identifier (branch name, tag name or commit id) that exists for this model name. Check the model page at 'https://huggingface.co/org/x' for available revisions.", "transformers"),
    ("OSError", "/models/x does not appear to have a file named configuration_x.py. Checkout 'https://huggingface.co//models/x/tree/main' for available files.", "transformers"),
    ("OSError", "You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/org/x.\n401 Client Error. (Request ID: Root=1-67a)\n\nCannot access gated repo for url https://huggingface.co/org/x/resolve/main/config.json.", "transformers"),
    ("OSError", "We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\nCheck your internet connection", "transformers"),
    ("OSError", "We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the cached files", "transformers"),
    ("ValueError", "The repository /models/VoxCPM2 contains custom code which must be executed to correctly load the model. You can inspect the repository content at /models/VoxCPM2 .\nPlease pass the argument `trust_remote_code=True` to allow custom code to be run.", "transformers"),
    ("ValueError", "The repository for org/x contains custom code which must be executed to correctly load the model. You can inspect the repository content at https://hf.co/org/x.", "transformers"),
    ("ValueError", "The repository org/x references custom code contained in org/y which must be executed to correctly load the model.", "transformers"),
    ("ValueError", "Loading org/x requires you to execute the configuration file in that repo on your local machine. Make sure you have read the code there to avoid malicious use", "transformers"),
    ("HFValidationError", "Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/srv/my models/not-there'. Use `repo_type` argument if needed.", "huggingface_hub"),
    ("HFValidationError", "Repo id must use alphanumeric chars, '-', '_' or '.'. The name cannot start or end with '-' or '.' and the maximum length is 96: './x'.", "huggingface_hub"),
    ("RepositoryNotFoundError", "401 Client Error. (Request ID: Root=1-67a)\n\nRepository Not Found for url: https://huggingface.co/api/models/org/x.\nPlease make sure you specified the correct `repo_id` and `repo_type`.", "huggingface_hub"),
    ("RepositoryNotFoundError", "404 Client Error.\n\nRepository Not Found for url: https://hf-mirror.com/api/models/org/x.", "huggingface_hub"),
    ("GatedRepoError", "403 Client Error. (Request ID: Root=1-67a)\n\nCannot access gated repo for url https://huggingface.co/org/x/resolve/main/config.json.", "huggingface_hub"),
    ("RevisionNotFoundError", "404 Client Error. (Request ID: Root=1-67a)\n\nRevision Not Found for url: https://huggingface.co/org/x/resolve/v9/config.json.", "huggingface_hub"),
    ("EntryNotFoundError", "404 Client Error. (Request ID: Root=1-67a)\n\nEntry Not Found for url: https://huggingface.co/org/x/resolve/main/y.", "huggingface_hub"),
    ("OfflineModeIsEnabled", "Cannot reach https://huggingface.co/api/models/org/x: offline mode is enabled. To disable it, please unset the `HF_HUB_OFFLINE` environment variable.", "huggingface_hub"),
    ("LocalEntryNotFoundError", "Cannot find the requested files in the disk cache and outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to False.", "huggingface_hub"),
    ("LocalEntryNotFoundError", "Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and outgoing traffic has been disabled. To enable repo look-ups and downloads online, pass 'local_files_only=False' as input.", "huggingface_hub"),
    ("LocalEntryNotFoundError", "An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache. Please check your connection and try again or make sure your Internet connection is on.", "huggingface_hub"),
    ("LocalEntryNotFoundError", "An error happened while trying to locate the files on the Hub and we cannot find the appropriate snapshot folder for the specified revision on the local disk.", "huggingface_hub"),
    ("SafetensorError", "Error while deserializing header: HeaderTooLarge", "safetensors"),
    ("SafetensorError", "Error while deserializing header: MetadataIncompleteBuffer", "safetensors"),
    ("SafetensorError", "Error while deserializing header: InvalidHeaderDeserialization", "safetensors"),
    ("SafetensorError", "Error while deserializing header: incomplete metadata, file not fully covered", "safetensors"),
    ("SafetensorError", "File does not contain tensor lm_head.weight", "safetensors"),
    ("FileNotFoundError", "No such file or directory: /models/x/model-00001-of-00002.safetensors", "safetensors"),
    ("Exception", "data did not match any variant of untagged enum ModelWrapper at line 757443 column 3", "tokenizers"),
    ("ValidationError", "1 validation error for UVAOffloadConfig\ncpu_offload_gb\n  Input should be greater than or equal to 0 [type=greater_than_equal, input_value=-1.0, input_type=float]", "pydantic"),
    ("ValidationError", "2 validation errors for SpeculativeConfig\nmethod\n  Field required [type=missing, input_value={}, input_type=dict]", "pydantic"),
    ("ValidationError", "1 validation error for ChatCompletionRequest\nfoo\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]", "pydantic"),
    ("ValidationError", "1 validation error for CompilationConfig\nfoo\n  Unexpected keyword argument [type=unexpected_keyword_argument, input_value=1, input_type=int]", "pydantic"),
    ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.68 GiB of which 1.10 GiB is free.", "torch"),
    ("OutOfMemoryError", "HIP out of memory. Tried to allocate 12.95 GiB. GPU 0 has a total capacity of 127.00 GiB of which 18.55 GiB is free.", "torch"),
    ("RuntimeError", "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported at some other API call", "torch"),
    ("AcceleratorError", "CUDA error: an illegal memory access was encountered", "torch"),
    ("RuntimeError", "HIP error: invalid device function", "torch"),
    ("RuntimeError", "CUDA driver initialization failed, you might not have a CUDA gpu.", "torch"),
    ("RuntimeError", "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx", "torch"),
    ("RuntimeError", "The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver by downloading and installing a new version", "torch"),
    ("RuntimeError", "No CUDA GPUs are available", "torch"),
    ("AssertionError", "Torch not compiled with CUDA enabled", "torch"),
    ("RuntimeError", "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method", "torch"),
    ("RuntimeError", "No available kernel. Aborting execution.", "torch"),
    ("RuntimeError", "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!", "torch"),
    ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (16x5120 and 2560x1024)", "torch"),
    ("ValueError", "both buffer length (0) and count (-1) must not be 0", "torch"),
    ("DistBackendError", "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclUnhandledCudaError: Call to CUDA function failed.", "torch"),
    ("RuntimeError", "NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)", "torch"),
    ("DistNetworkError", "The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use", "torch"),
    ("OutOfResources", "out of resource: shared memory, Required: 131072, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.", "triton"),
    ("RuntimeError", "0 active drivers ([]). There should only be one.", "triton"),
    ("ActorDiedError", "The actor died unexpectedly before finishing this task.\n\tclass_name: RayWorkerWrapper\n\tactor_id: 0b7ad5", "ray"),
    ("ActorDiedError", "The actor died because of an error raised in its creation task, ray::LLMActor.__init__() (pid=71, ip=10.0.0.2)", "ray"),
    ("WorkerCrashedError", "The worker died unexpectedly while executing this task. Check python-core-worker-*.log files for more information.", "ray"),
    ("ConnectionError", "Could not find any running Ray instance. Please specify the one to connect to by setting `--address` flag or `RAY_ADDRESS` environment variable.", "ray"),
    ("ZMQError", "Address already in use (addr='tcp://127.0.0.1:5570')", "zmq"),
    ("MaxRetryError", RETRIES, "urllib3"),
    ("ConnectionError", RETRIES, "requests"),
    ("SSLError", f"(MaxRetryError(\"{RETRIES}\"), '(Request ID: 0b4f)')", "requests"),
    ("JSONDecodeError", "Expecting value: line 1 column 1 (char 0)", "json"),
    ("ValidationError", "Expecting value: line 1 column 1 (char 0)", "json"),
    ("JSONDecodeError", "Expecting ',' delimiter: line 1 column 8 (char 7)", "json"),
    ("JSONDecodeError", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", "json"),
    ("JSONDecodeError", "Extra data: line 1 column 4 (char 3)", "json"),
    ("JSONDecodeError", "Unterminated string starting at: line 1 column 1 (char 0)", "json"),
    ("ValueError", "Out of range float values are not JSON compliant", "json"),
    ("ValueError", "Out of range float values are not JSON compliant: nan", "json"),
    ("ValueError", "'fancy' is not a valid LoadFormat", "enum"),
    ("ValueError", "7 is not a valid KVConnector.Role", "enum"),
    ("ValueError", "Unknown level: 'LOUD'", "logging"),
    ("ValueError", "Formatting field not found in record: 'fileinfo'", "logging"),
    ("ValueError", "Unable to configure handler 'vllm'", "logging"),
    ("ValueError", "Unable to configure formatter 'vllm'", "logging"),
    ("ValueError", "Unable to configure root logger", "logging"),
    ("ModuleNotFoundError", "No module named 'vllm._C_stable'", "importlib"),
    ("ModuleNotFoundError", "No module named 'lmcache'", "importlib"),
    ("ModuleNotFoundError", "No module named 'json.nope'; 'json' is not a package", "importlib"),
    ("OSError", "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", "asyncio"),
    ("OSError", "[Errno 98] Address already in use", "socket"),
    ("gaierror", "[Errno -2] Name or service not known", "socket"),
    ("OSError", "[Errno 28] No space left on device", "python"),
    ("OSError", "[Errno 28] No space left on device: '/dev/shm/psm_1'", "python"),
    ("FileNotFoundError", "[Errno 2] No such file or directory: '/srv/none.yaml'", "python"),
    ("ValueError", "invalid literal for int() with base 10: 'tcp://10.0.0.1:8000'", "python"),
    ("ValueError", "could not convert string to float: 'auto'", "python"),
    ("ValueError", "not enough values to unpack (expected 3, got 2)", "python"),
    ("ValueError", "too many values to unpack (expected 2)", "python"),
    ("ImportError", "cannot import name 'AutoModelForVision2Seq' from 'transformers' (/usr/lib/python3/site-packages/transformers/__init__.py)", "python"),
    ("ImportError", "libcudart.so.12: cannot open shared object file: No such file or directory", "python"),
    ("OSError", "libnope.so: cannot open shared object file: No such file or directory", "python"),
    ("ImportError", "/opt/venv/lib/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "python"),
]  # fmt: skip
NEAR = [
    ("RuntimeError", "NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"),
    ("RuntimeError", "CUDART error: invalid argument"),
    ("RuntimeError", "CUDA runtime error: cudaErrorInvalidValue"),
    ("RuntimeError", "CUDA initialization is blocked."),
    ("RuntimeError", "CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."),
    ("ValueError", "Invalid repository ID or local directory specified: '/srv/models/empty'.\nPlease verify the following requirements:\n1. Provide a valid Hugging Face repository ID."),
    ("RuntimeError", "Failed to load the model config. If the model is a custom model not yet available in the HuggingFace transformers library, consider setting `trust_remote_code=True` in LLM or using the `--trust-remote-code` flag in the CLI."),
    ("ValueError", "Cannot find model module. 'X' is not a registered model in the Transformers library (only relevant if the model is meant to be in Transformers)"),
    ("ValueError", "'tensor_parallel_size' is not a valid argument in the speculative_config. Please pass 'draft_tensor_parallel_size' instead."),
    ("ValueError", "Specified KV sharing target layer for a is not valid: target layer b is not a valid Attention layer in the model."),
    ("AssertionError", "Expecting a dictionary, got Expecting value: line 1 column 1 (char 0)"),
    ("TypeError", "<class 'int'> is not a valid chat template type"),
    ("ImportError", "Cannot import module 'a.b' for custom proposer 'c': No module named 'a.b'"),
    ("ValueError", "All inputs must be on the same device."),
    ("RuntimeError", "Cannot find any model weights with `/srv/models/tiny`"),
    ("ValueError", "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."),
    ("ValidationError", "1 validation error for ModelConfig\n  Value error, No supported config format found in /x [type=value_error, input_value=ArgsKwargs(()), input_type=ArgsKwargs]"),
    # Another's words at the end of a message of one's own.
    ("ValueError", "Cannot read the role: 'x' is not a valid Role"),
    ("RuntimeError", "Cannot fetch the adapter: 404 Client Error. Entry Not Found for url: https://huggingface.co/org/x"),
    ("RuntimeError", f"Cannot fetch the image: {RETRIES}"),
    ("ImportError", "Install it first: libcudart.so.12: cannot open shared object file: No such file or directory"),
    ("ValueError", ""),
    (None, "  \n "),
]  # fmt: skip


@pytest.mark.parametrize(("type", "message", "package"), KNOWN)
def test_a_message_names_its_package(type: str, message: str, package: str) -> None:
    assert raised_by(type, message) == package
    assert raised_by(f"some.package.{type}", message) == package


@pytest.mark.parametrize(("type", "message"), NEAR)
def test_what_only_resembles_is_not_claimed(type: str | None, message: str) -> None:
    assert raised_by(type, message) is None


@pytest.mark.parametrize("number", range(len(RULES)))
def test_every_rule_has_an_example(number: int) -> None:
    rule = RULES[number]
    template = Template(rule.template)
    heads = [text for _, message, _ in KNOWN for text in (message, message.partition("\n")[0])]
    assert any(template.match(head) is not None for head in heads), f"no example of {rule.template!r}"


def test_the_type_must_agree_unless_it_is_lost() -> None:
    assert raised_by("KeyError", "Unknown level: 'LOUD'") is None
    assert raised_by("logging.Anything", "Unknown level: 'LOUD'") is None
    assert raised_by(None, "Unknown level: 'LOUD'") == "logging"
    assert raised_by("", "Unknown level: 'LOUD'") == "logging"


@pytest.mark.parametrize(("type", "message", "package"), KNOWN)
def test_without_a_type_every_rule_is_tried(type: str, message: str, package: str) -> None:
    # urllib3's words are requests' too: the type alone tells them apart.
    assert raised_by(None, message) == ("urllib3" if package == "requests" else package)


def test_the_first_line_is_enough_of_a_long_message() -> None:
    stack = "\n".join(f"frame #{number}: c10::Error::Error() + 0x{number:x} (libc10.so)" for number in range(2000))
    assert raised_by("RuntimeError", f"No CUDA GPUs are available\nException raised from f:\n{stack}") == "torch"
    assert raised_by("torch.OutOfMemoryError", f"CUDA out of memory. Tried to allocate 2.00 GiB.\n{stack}") == "torch"
    assert raised_by("ValueError", f"{DOES_NOT_RECOGNIZE}\n{stack}") == "transformers"


def test_a_later_line_is_not_looked_at() -> None:
    assert raised_by("RuntimeError", "Failed to start.\nNo CUDA GPUs are available") is None


def test_wrapping_and_padding_do_not_matter() -> None:
    assert raised_by("ValueError", "\n  not enough values\n   to unpack (expected 3, got  2) ") == "python"
