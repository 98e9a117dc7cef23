"""Takes off what carried a line here: docker, CRI, compose, journald, kubectl, CI systems, cloud consoles, quoting.

The outermost form is taken off first, again and again until none fits. What a form says about the origin (a service, a
pod, a unit, a rank) becomes part of the stream's name, so that two containers in one file never mix.
"""

from __future__ import annotations

from lmdiag.lazy_pattern import lazy
from lmdiag.parse.anchors import holds_anchor

_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_KNOWN = r"(?=\(?(?:[\w:.-]+ )?pid=\d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[ :]|Traceback \(|  +File \"|\[rank\d|\x1b|LMCache)"

CUT = lazy(rf"{_ISO} (?:stdout|stderr) ([FP]) ?")
"""A CRI line; `P`: the next one continues it. stdout and stderr stay one stream: a record and its echo belong together."""
_TIMESTAMP = lazy(rf"{_ISO}(?: |$)(?:- [\w.… ]+ - [A-Z]+ - )?(?:##\[\w+\])?")
_BRACKET_TIMESTAMP = lazy(rf"(?: *\| )?\[{_ISO}\](?: |$)")
_DATE = lazy(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?"
    r"(?: \| [A-Z]+ +\| [\w.]+ \|(?: |$)| \|(?: |$)| \[\w+\] \(\w+\) |  >> |(?![,\d]) ?)"
)
_SYSLOG = lazy(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]+) ([\w./@:-]+?)(\[\d+\])?: ?")
_SYSLOG_REST = lazy(r"([\w.-]+) ([\w./@-]+)(\[\d+\]): ?")
# Compose pads the name to the longest one and adds a blank; a bare table's `word | word` has neither.
_COMPOSE = lazy(r"(\[?[A-Za-z][\w.-]*\]?)(?: {2,}|(?<=\d) |(?<=\d))\| ?")
_POD = lazy(r"\[(pod/[^\]\s]+)\] ?")
_STERN = lazy(rf"([a-z0-9][\w.-]* [\w.-]+) {_KNOWN}")
_LABEL = lazy(rf" {{0,4}}([\w.-]+): {_KNOWN}")
_TORCHRUN = lazy(r"\[?((?:rank|default)\d+)\]: ?")
_QUOTE = lazy(r"(?:> ?)+|\*\*(?=[(A-Z])|`(?=[(A-Z])|vLLM STD(?:OUT|ERR): ?")
_COMPOSE_NOT = frozenset({"ERROR", "INFO", "WARNING", "DEBUG", "CRITICAL", "E"})

_FIRST = frozenset("0123456789[>`* vrABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuwxyz")


class Unwrapper:
    """Unwraps the lines of one source.

    It keeps the labels (stern's pod names, srun's task numbers) that it has seen in front of a certain vLLM line with an
    anchor, since in front of a bare traceback line alone they could be anything.
    """

    _MAX_LABELS = 256

    def __init__(self) -> None:
        self._labels: dict[str, list[tuple[str, str]]] = {}

    def unwrap(self, text: str) -> tuple[str, str]:
        """Return the names of the containers, each with a blank behind it, and the text inside them.

        It stops before a container that cuts lines (`CUT`), since what is inside that one may be a piece.
        """
        stream = ""
        for _ in range(6):
            head = text[:1]
            if head == "(" or head not in _FIRST or (head.isdigit() and CUT.match(text)):
                break
            found = self._one(text)
            if found is None:
                break
            stream, text = stream + found[0], text[found[1] :]
        return stream, text

    def _one(self, text: str) -> tuple[str, int] | None:
        head = text[0]
        if head.isdigit():
            if hit := _TIMESTAMP.match(text) or _DATE.match(text):
                return self._after_timestamp(text, hit.end())
        elif head == "[":
            if hit := _BRACKET_TIMESTAMP.match(text):
                return "", hit.end()
            if hit := _POD.match(text) or _TORCHRUN.match(text):
                return hit.group(1) + " ", hit.end()
        elif head in ">`*v" and (hit := _QUOTE.match(text)):
            return "", hit.end()
        elif head == "r" and (hit := _TORCHRUN.match(text)):
            return hit.group(1) + " ", hit.end()
        if "A" <= head <= "Z" and (hit := _SYSLOG.match(text)):
            return f"{hit.group(2)}{hit.group(3) or ''} ", hit.end()
        if head == " " and (hit := _BRACKET_TIMESTAMP.match(text)):
            return "", hit.end()
        return self._label(text)

    def _after_timestamp(self, text: str, end: int) -> tuple[str, int]:
        """`journalctl -o short-iso` goes on with host and unit."""
        if hit := _SYSLOG_REST.match(text, end):
            return f"{hit.group(2)}{hit.group(3)} ", hit.end()
        return "", end

    def _label(self, text: str) -> tuple[str, int] | None:
        if "|" in text[:80] and (hit := _COMPOSE.match(text)) and hit.group(1) not in _COMPOSE_NOT:
            return hit.group(1) + " ", hit.end()
        for label, name in self._labels.get(text.partition(" ")[0], ()):
            if text.startswith(label):
                return name, len(label)
        if ("pid=" in text[:120] or ": " in text[:64]) and (hit := _STERN.match(text) or _LABEL.match(text)):
            name = hit.group(1)
            if name in _COMPOSE_NOT or name.endswith(("Error", "Exception")):
                return None
            if len(self._labels) < self._MAX_LABELS and holds_anchor(text):
                self._labels.setdefault(text.partition(" ")[0], []).append((text[: hit.end()], name + " "))
            return name + " ", hit.end()
        return None
