"""Where an exception's message ends, when it has several lines and nothing in a raw log marks its end."""

from __future__ import annotations

import re

from lmdiag.lazy_pattern import lazy

# The known messages of several lines that vLLM servers die of: their first line, and whether blank lines belong to them.
_KNOWN_HEADS = (
    ("Invalid repository ID or local directory specified", False),
    ("The checkpoint you are trying to load has model type", True),
    ("The repository ", False),
    ("Loading ", False),
    ("You are trying to access a gated repo", False),
    ("We couldn't connect to", False),
    ("is not a local folder and is not a valid model identifier", False),
    ("is not a valid git identifier", False),
    ("Couldn't instantiate the backend tokenizer", False),
    ("401 Client Error", True),
    ("403 Client Error", True),
    ("404 Client Error", True),
    ("CUDA error:", True),
    ("CUDA out of memory", False),
    ("Failed to import transformers", False),
    ("HIP error:", True),
)
_PYDANTIC = lazy(r"\d+ validation errors? for ")
_PYDANTIC_FIELD = lazy(r"  \S|[A-Za-z_][\w.\-\[\],|]*$")
_PYDANTIC_END = lazy(r"\s+For further information visit ")
_PYDANTIC_VALUE = lazy(
    r"(?:Value error|Assertion failed), (.*?)(?:\s*\[type=\w+, input_value=|\s*\n\s*For further information|\s*\Z)",
    re.DOTALL,
)
_LIST_ITEM = lazy(r"\s+\S|[-*•] |\d{1,2}[.)] ")
_NEW_THING = lazy(
    r"Process \S+:$|Exception ignored in|usage: |[\w./-]+: (?:error|warning): |\S+\.py:\d+: |During handling of|"
    r"The above exception|\[|\(\w|"
    r"[\w .,():-]{0,80}?\d{1,3}%(?:\||\s+Completed)|\d{4}-\d\d-\d\d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b|Traceback|"
    r"nanobind|terminate called|\$ |\S+@\S+[:$#]|\*\*\*|Fatal Python|See https://|Actions for L\d+$|\d+$|Sentry|=+$|-+$|"
    r"swigvarlink|sys:\d+:|Aborted|Segmentation|Killed|resource_tracker|make: |ERROR:|\+"
)
_JUNK = lazy(r"Actions for L\d+$|\d{1,6}$")


def is_junk(text: str) -> bool:
    """Say whether a raw line is what web views of CI logs leave between the lines of a copy."""
    return _JUNK.match(text) is not None


def continues_message(message: list[str], blanks: int, text: str, *, in_record: bool) -> bool:
    """Say whether `text` goes on with an exception's message.

    Inside a record everything does. A raw line does if it looks like it: an indented line or a list item, or any prose
    behind the first line of a message that is known to have several.
    """
    if in_record:
        return True
    if _PYDANTIC.match(message[0]):
        if _PYDANTIC_END.match(message[-1]):  # one error of several is over
            return not blanks and _PYDANTIC_FIELD.match(text) is not None
        return _NEW_THING.match(text) is None
    if _NEW_THING.match(text):
        return False
    for head, over_blanks in _KNOWN_HEADS:
        if head in message[0]:
            return over_blanks or not blanks
    return not blanks and (
        _LIST_ITEM.match(text) is not None or message[-1].rstrip().endswith((":", ",", "(", "[", "{"))
    )


def finish_message(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """Join the lines of a message; take pydantic's wrapping off it.

    Returns the message and its notes. Of a pydantic ValidationError with `Value error, …` the message is what the
    validator raised (the inner error), and what pydantic says around it becomes the note.
    """
    text = "\n".join(line.rstrip() for line in lines).strip()
    if "validation error" not in lines[0]:
        return text, ()
    inner = [hit.group(1).strip() for hit in _PYDANTIC_VALUE.finditer(text)]
    return (inner[0], (lines[0].strip(), *inner[1:])) if inner else (text, ())
