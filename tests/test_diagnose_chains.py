from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.diagnose.chains import Quoted, is_noise, is_weak, of_the_chain, root_index, symptom
from lmdiag.model import ExceptionInfo, Frame, Match, Origin, Traceback

SYMPTOMS = {
    "engine core": ("RuntimeError", "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}"),
    "engine core and frontend": ("RuntimeError", "Engine core initialization failed. See root cause above. Failed core proc(s): {}, failed frontend proc(s): {'a': 1}"),
    "frontend": ("RuntimeError", "Frontend process failed during engine core initialization. See root cause above."),
    "worker": ("Exception", "WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause."),
    "V0": ("RuntimeError", "Engine process failed to start. See stack trace for the root cause."),
    "V0 of 0.6.0": ("RuntimeError", "Engine process failed to start"),
    "dead engine": ("EngineDeadError", "EngineCore encountered an issue. See stack trace (above) for the root cause."),
    "dead asynchronous engine": ("AsyncEngineDeadError", "Task finished unexpectedly. This should never happen! Please open an issue. See stack trace above for the actual cause."),
    "background loop": ("AsyncEngineDeadError", "Background loop has errored already."),
    "fatal signal": ("", "Got fatal signal from worker processes, shutting down. See stack trace above for root cause issue."),
    "clean-up of 0.8, workers": ("AttributeError", "'MultiprocExecutor' object has no attribute 'workers'"),
    "clean-up of 0.8, pool": ("AttributeError", "'MultiprocExecutor' object has no attribute 'io_thread_pool'"),
    "a worker is gone": ("RuntimeError", "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor."),
    "cancelled": ("RuntimeError", "cancelled"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "message"), SYMPTOMS.values(), ids=SYMPTOMS)
def test_what_only_reports_another_failure(name: str, message: str) -> None:
    assert symptom(name, message) == (True, None)


QUOTING = {
    "executor": ("RuntimeError", "Worker failed with error 'x y', please check the stack trace above for the root cause", Quoted(None, "x y")),
    "executor, an apostrophe inside": ("RuntimeError", "Worker failed with error 'it's x', please check the stack trace above for the root cause", Quoted(None, "it's x")),
    "executor, several lines": ("RuntimeError", "Worker failed with error 'x\ny', please check the stack trace above for the root cause", Quoted(None, "x\ny")),
    "executor, nothing": ("RuntimeError", "Worker failed with error '', please check the stack trace above for the root cause", None),
    "dead engine of V0": ("MQEngineDeadError", "Engine loop is not running. Inspect the stacktrace to find the original error: ValueError('x y').", Quoted("ValueError", "x y")),
    "dead engine, double quotes": ("MQEngineDeadError", "Engine loop is not running. Inspect the stacktrace to find the original error: ValueError(\"it's x\").", Quoted("ValueError", "it's x")),
    "dead engine, a repr of two lines": ("MQEngineDeadError", r"Engine loop is not running. Inspect the stacktrace to find the original error: RuntimeError('x\ny').", Quoted("RuntimeError", "x\ny")),
    "utility call": ("ValueError", "Call to add_lora method failed: x y", Quoted(None, "x y")),
    "V0's model execution": ("ValueError", "Error in model execution (input dumped to /tmp/err_execute_model_input_20250101-000000.pkl): x y", Quoted("ValueError", "x y")),
    "V0's model execution, no dump": ("IndexError", "Error in model execution: x y", Quoted("IndexError", "x y")),
}  # fmt: skip


@pytest.mark.parametrize(("name", "message", "quoted"), QUOTING.values(), ids=QUOTING)
def test_a_symptom_gives_what_it_quotes(name: str, message: str, quoted: Quoted | None) -> None:
    assert symptom(name, message) == (True, quoted)


CAUSES = {
    "memory": ("ValueError", "No available memory for the cache blocks."),
    "a client quotes a symptom": (
        "ValueError",
        "Unknown role: Engine core initialization failed. See root cause above",
    ),
    "another attribute": ("AttributeError", "'MultiprocExecutor' object has no attribute 'x'"),
    "a runtime error": ("RuntimeError", "CUDA error: an illegal memory access was encountered"),
    "no message": ("AssertionError", ""),
}


@pytest.mark.parametrize(("name", "message"), CAUSES.values(), ids=CAUSES)
def test_a_cause_is_no_symptom(name: str, message: str) -> None:
    assert symptom(name, message) == (False, None)


@given(st.text(), st.text())
@settings(deadline=None)
def test_any_message_is_survived(name: str, message: str) -> None:
    symptom(name, message)


@pytest.mark.parametrize(
    ("name", "message", "weak"),
    [
        ("BrokenPipeError", "[Errno 32] Broken pipe", True),
        ("ConnectionResetError", "x", True),
        ("EOFError", "", True),
        ("torch.distributed.DistBackendError", "NCCL communicator was aborted on rank 1.", True),
        ("RuntimeError", "[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:1", True),
        ("ValueError", "x", False),
        ("torch.OutOfMemoryError", "CUDA out of memory.", False),
    ],
)
def test_what_follows_from_a_neighbours_death_is_weak(name: str, message: str, weak: bool) -> None:
    assert is_weak(ExceptionInfo(name, message)) is weak


@pytest.mark.parametrize(
    ("header", "noise"),
    [
        ("Exception ignored in: <function LLM.__del__ at 0x7f>", True),
        ("Task exception was never retrieved", True),
        ("EngineCore failed to start.", False),
        ("", False),
    ],
)
def test_pseudo_tracebacks_are_noise(header: str, noise: bool) -> None:
    exceptions = (ExceptionInfo("AttributeError", "x"),)
    assert is_noise(Traceback(Origin("s", 1, 2), exceptions, header)) is noise


def link(name: str, message: str = "m", relation: str | None = None, function: str = "f") -> ExceptionInfo:
    return ExceptionInfo(name, message, (Frame("/a/x.py", 1, function),), relation)


DEAD = "Engine core initialization failed. See root cause above."
CHAINS = {
    "one": ((link("ValueError"),), 0),
    "a refused download is explained": ((link("requests.exceptions.HTTPError", "401"), link("ValueError", "Invalid repository ID", "cause")), 1),
    "a look-up is explained": ((link("KeyError", "'llama9'"), link("ValueError", "does not recognize this architecture", "context")), 1),
    "a question without terminal is explained": ((link("EOFError", "EOF when reading a line"), link("ValueError", "set trust_remote_code=True", "context")), 1),
    "an attribute is explained": ((link("AttributeError"), link("ValueError", "Unable to configure formatter 'vllm'", "cause")), 1),
    "a bare wrapper gives way": ((link("ValueError", "a.b is unsupported LoRA weight"), link("RuntimeError", "Loading lora q failed", "cause")), 0),
    "the client sees the last of a fallback": ((link("ValueError", "xgrammar cannot"), link("ValueError", "guidance cannot", "context")), 1),
    "the clean-up failed too": ((link("ValueError"), link("AttributeError", "no 'x'", "context", "shutdown")), 0),
    "a symptom gives way": ((link("ValueError"), link("RuntimeError", DEAD, "context")), 0),
    "symptoms give way": ((link("ValueError"), link("RuntimeError", DEAD, "context"), link("RuntimeError", DEAD, "context")), 0),
    "Ctrl-C while handling": ((link("ValueError"), link("KeyboardInterrupt", "", "context")), 0),
    "the leaf of a group": ((link("ExceptionGroup", "unhandled errors in a TaskGroup"), link("ValueError", "x", "group")), 1),
    "the first leaf of a group": ((link("ExceptionGroup", "unhandled"), link("ValueError", "x", "group"), link("KeyError", "y", "group")), 1),
}  # fmt: skip


@pytest.mark.parametrize(("chain", "index"), CHAINS.values(), ids=CHAINS)
def test_the_root_of_a_chain(chain: tuple[ExceptionInfo, ...], index: int) -> None:
    assert root_index(chain) == index


def card_of(name: str) -> Callable[[ExceptionInfo], Match | None]:
    return lambda info: Match(f"card-{info.message}", (), "exact") if info.name == name else None


def test_the_last_with_a_card_advises_on_the_chain() -> None:
    chain = (link("KeyError", "a"), link("ValueError", "b", "context"), link("ValueError", "c", "context"))
    assert of_the_chain(chain, card_of("ValueError")) == Match("card-c", (), "exact")
    assert of_the_chain(chain, card_of("KeyError")) == Match("card-a", (), "exact")
    assert of_the_chain(chain, card_of("OSError")) is None


def test_a_symptom_advises_on_nothing() -> None:
    chain = (link("ValueError", "x"), link("RuntimeError", DEAD, "context"))
    assert of_the_chain(chain, card_of("RuntimeError")) is None
