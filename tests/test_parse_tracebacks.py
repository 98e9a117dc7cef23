from __future__ import annotations

import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmdiag.model import ExceptionInfo, Frame
from lmdiag.parse.tracebacks import TracebackReader, opens

HEADER = "Traceback (most recent call last):"
FRAME = '  File "/a/vllm/x.py", line 1, in f'
AT = Frame("/a/vllm/x.py", 1, "f")
CAUSE = "The above exception was the direct cause of the following exception:"
CONTEXT = "During handling of the above exception, another exception occurred:"


def read(*lines: str, in_record: bool = False) -> tuple[ExceptionInfo, ...]:
    """The exceptions of lines that all belong to one traceback."""
    reader = TracebackReader(lines[0], in_record=in_record)
    for line in lines[1:]:
        assert reader.feed(line), line
    return reader.exceptions()


def value_error(message: str = "x y", *frames: Frame) -> ExceptionInfo:
    return ExceptionInfo("ValueError", message, frames or (AT,))


SINGLE = {
    "3.9, without carets": ([FRAME, "    g()", "ValueError: x y"], value_error()),
    "3.11, with carets": ([FRAME, "    g()", "    ^^^", "ValueError: x y"], value_error()),
    "3.13": ([FRAME, "    raise ValueError(", "    ...<6 lines>...", "    )", "ValueError: x y"], value_error()),
    "3.13, a source of several lines": ([FRAME, "    h(", "    ~^", "        1,", "        ^^", "    )", "    ^", "ValueError: x y"], value_error()),
    "no source": (['  File "uvloop/loop.pyx", line 1518, in uvloop.loop.Loop.run_until_complete', '  File "<frozen runpy>", line 198, in _run_module_as_main', "ValueError: x y"], value_error("x y", Frame("uvloop/loop.pyx", 1518, "uvloop.loop.Loop.run_until_complete"), Frame("<frozen runpy>", 198, "_run_module_as_main"))),
    "module level": (['  File "/a/x.py", line 7, in <module>', "ValueError: x y"], value_error("x y", Frame("/a/x.py", 7, "<module>"))),
    "no message": ([FRAME, "    assert x", "AssertionError"], ExceptionInfo("AssertionError", "", (AT,))),
    "an empty message": ([FRAME, "ValueError: "], value_error("")),
    "a dotted type": ([FRAME, "vllm.exceptions.VLLMValidationError: m (parameter=max_tokens, value=0)"], ExceptionInfo("vllm.exceptions.VLLMValidationError", "m (parameter=max_tokens, value=0)", (AT,))),
    "a type with an unusual name": ([FRAME, "zmq.error.Again: Resource temporarily unavailable"], ExceptionInfo("zmq.error.Again", "Resource temporarily unavailable", (AT,))),
    "a message with a colon": ([FRAME, "ValueError: a: b: c"], value_error("a: b: c")),
    "the source repeats the message": ([FRAME, '    raise ValueError("x y")', "ValueError: x y"], value_error()),
    "a recursion": ([FRAME, "    f()", "  [Previous line repeated 981 more times]", "RecursionError: too deep"], ExceptionInfo("RecursionError", "too deep", (AT,))),
    "indentation lost": ([FRAME.strip(), "g()", "ValueError: x y"], value_error()),
    "a blank line after each": (["", FRAME, "", "    g()", "", "ValueError: x y"], value_error()),
    "no frames": (["ValueError: x y"], ExceptionInfo("ValueError", "x y")),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "wanted"), SINGLE.values(), ids=SINGLE)
@pytest.mark.parametrize("in_record", [True, False], ids=["record", "raw"])
def test_one_exception(lines: list[str], wanted: ExceptionInfo, in_record: bool) -> None:
    assert read(HEADER, *lines, in_record=in_record) == (wanted,)


@pytest.mark.parametrize(("sentence", "relation"), [(CAUSE, "cause"), (CONTEXT, "context")])
def test_a_chain(sentence: str, relation: str) -> None:
    found = read(
        HEADER, FRAME, "    g()", "KeyError: 'a'", "", sentence, "", HEADER, FRAME, "    h()", "ValueError: x y"
    )
    assert found == (ExceptionInfo("KeyError", "'a'", (AT,)), value_error()._replace(relation=relation))


def test_a_chain_of_three() -> None:
    found = read(HEADER, FRAME, "A.AError: 1", "", CAUSE, "", HEADER, FRAME, "A.BError: 2", "", CONTEXT, "", HEADER, FRAME, "A.CError: 3")  # fmt: skip
    assert [(item.name, item.message, item.relation) for item in found] == [("AError", "1", None), ("BError", "2", "cause"), ("CError", "3", "context")]  # fmt: skip


def test_a_group_gives_its_leaf_last() -> None:
    found = read(
        "  + Exception Group " + HEADER,
        "  | " + FRAME,
        "  |     raise BaseExceptionGroup(",
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
        "  +-+---------------- 1 ----------------",
        "    | " + HEADER,
        "    | " + FRAME,
        "    |     g()",
        "    | ValueError: x y",
        "    +------------------------------------",
    )
    assert [item.name for item in found] == ["ExceptionGroup", "ValueError"]
    assert found[1] == value_error()._replace(relation="group")


def test_ray_puts_its_own_exception_in_the_middle() -> None:
    found = read(
        HEADER,
        '  File "/a/ray/worker.py", line 2, in get',
        "    raise value.as_instanceof_cause()",
        "ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=1, ip=10.0.0.2, actor_id=ab, repr=<x>)",
        "           ^^^^^^^^^^^^",
        FRAME,
        "    g()",
        "ValueError: x y",
    )  # fmt: skip
    assert found[-1] == value_error()


def test_ray_serve_puts_a_traceback_into_the_message() -> None:
    found = read(HEADER, '  File "/a/ray/serve.py", line 2, in get', "RuntimeError: " + HEADER, FRAME, "    g()", "ValueError: x y")  # fmt: skip
    assert found == (value_error(),)


def test_a_note_of_pydantic_is_kept_apart() -> None:
    found = read(HEADER, FRAME, "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig", "  Value error, x y [type=value_error, input_value=ArgsKwargs((), {'model': 1}), input_type=ArgsKwargs]", "    For further information visit https://errors.pydantic.dev/2.12/v/value_error")  # fmt: skip
    assert [(item.name, item.message) for item in found] == [("ValidationError", "x y")]


def test_a_notebook() -> None:
    found = read("ValueError                                Traceback (most recent call last)", "Cell In[3], line 4", "----> 4 f()", "", "File ~/x.py:722, in f(args)", "    722 g()", "", "ValueError: x y")  # fmt: skip
    assert [(item.type, item.message) for item in found] == [("ValueError", "x y")]
    assert found[0].frames[-1] == Frame("~/x.py", 722, "f")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        (HEADER, ""),
        ("EngineCore hit an exception: " + HEADER, "EngineCore hit an exception"),
        ("Exception in worker W while processing method load_model: x y, " + HEADER, "Exception in worker W while processing method load_model: x y"),
    ],
    ids=["bare", "0.8", "0.6"],
)  # fmt: skip
def test_what_stands_before_the_traceback(text: str, header: str) -> None:
    assert TracebackReader(text, in_record=True).header == header


OPENS = {
    "a header": (HEADER, True),
    "a group": ("  + Exception Group " + HEADER, True),
    "a frame whose head is cut off": (FRAME, True),
    "a notebook": ("ValueError                 Traceback (most recent call last)", True),
    "prose": ("Traceback is a word", False),
    "a literal that holds one": (rf"prompt: 'a\n{HEADER}\n'", False),
    "an exception": ("ValueError: x", False),
    "empty": ("", False),
}


@pytest.mark.parametrize(("text", "wanted"), OPENS.values(), ids=OPENS)
def test_what_opens_a_traceback(text: str, wanted: bool) -> None:
    assert opens(text) is wanted


@pytest.mark.parametrize("text", [FRAME, "ValueError: x y"])
def test_a_missing_head_is_told(text: str) -> None:
    assert TracebackReader(text, in_record=False).head_missing
    assert not TracebackReader(HEADER, in_record=False).head_missing


REFUSED = {
    "another traceback": HEADER,
    "a dying process": "Process EngineCore_DP0:",
    "prose": "Loading the model took 3 seconds",
    "uvicorn": "INFO:     Shutting down",
    "usage": "usage: vllm serve",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_raw_line_that_cannot_continue_is_refused(text: str) -> None:
    reader = TracebackReader(HEADER, in_record=False)
    assert all(map(reader.feed, (FRAME, "    g()", "ValueError: x y")))
    assert not reader.feed(text)
    assert reader.exceptions() == (value_error(),)


def test_a_traceback_without_an_exception_leaves_its_frames() -> None:
    reader = TracebackReader(HEADER, in_record=False)
    assert reader.feed(FRAME)
    assert (reader.has_exception, reader.open_frames(), reader.exceptions()) == (False, (AT,), ())


def test_an_endless_traceback_is_bounded() -> None:
    reader = TracebackReader(HEADER, in_record=True)
    taken = sum(1 for _ in range(20_000) if reader.feed(FRAME))
    assert taken < 20_000
    assert len(reader.open_frames()) < 1000
    assert len(reader.lines) < 100


@given(st.text(st.characters(categories=["L", "N"]), min_size=1).map(lambda text: "a " + text), st.integers(1, 5))
@settings(deadline=None)
def test_what_python_itself_prints_is_read(message: str, depth: int) -> None:
    def fail(level: int) -> None:
        if level == 0:
            raise ValueError(message)
        fail(level - 1)

    try:
        fail(depth)
    except ValueError as error:
        lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    (found,) = read(*lines)
    assert (found.type, found.message, found.frames[-1].function) == ("ValueError", message, "fail")


@given(st.lists(st.text() | st.sampled_from((HEADER, FRAME, "ValueError: x", "    ^^^", CAUSE, "", "  | ", "  +-+---------------- 1 ----------------"))))  # fmt: skip
@settings(deadline=None)
def test_any_lines_are_survived(lines: list[str]) -> None:
    reader = TracebackReader(HEADER, in_record=False)
    for line in lines:
        if not reader.feed(line):
            break
    assert all(isinstance(item.message, str) for item in reader.exceptions())
