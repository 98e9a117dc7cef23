"""Reads vLLM's own line prefix, and those of LMCache, uvicorn and Python's logging, in every release's shape."""

from __future__ import annotations

from typing import NamedTuple

from lmdiag.lazy_pattern import lazy

_PROCESS = r"\(?(?:[\w:./-]+ (?:[\w=:-]+ )?)?pid=\d+(?:, ip=[\w.:]+)?\)(?: |$)"
_LEVEL = r"DEBUG|INFO|WARNING|ERROR|CRITICAL"
_STAMP = rf"(?:{_LEVEL}) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]+:\d+[\]\[]+"

_CHAIN = lazy(rf"(?:{_PROCESS}){{1,8}}")
_INNERMOST = lazy(r"\(?((?:[\w:./-]+ (?:[\w=:-]+ )?)?)pid=(\d+)(?:, ip=[\w.:]+)?\) ?$")
_RECORD = lazy(
    rf"(?:\[[\w -]{{1,30}}\] |[\w.=/:-]{{1,40}} )??({_LEVEL}) "
    r"(\d\d-\d\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) \[?([\w./<>-]+):(\d+)[\]\[]+ ?"
)
_LMCACHE = lazy(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+)\] LMCache (DEBUG|INFO|WARNING|ERROR|CRITICAL):? ?")
_LMCACHE_OLD = lazy(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) LMCache: ?")
_LMCACHE_END = lazy(r" ?\(([\w.-]+\.py):(\d+):[\w.]+\)$")
# uvicorn pads the level to nine columns; a text copy may have folded the blanks, and what follows may be indented.
_UVICORN = lazy(
    r"(INFO(?=: {5})|(?:ERROR|DEBUG)(?=: {4})|WARNING(?=: {2})|(?:INFO|WARNING|ERROR|CRITICAL|DEBUG)(?=: \S|:$)):"
)
_UVICORN_COLUMNS = 10
_LMCACHE_OLD_END = lazy(r" \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\] -- \S+:\d+$")
_OTHER = lazy(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+[\t ](?:[\w.]+ \d* ?)?(DEBUG|INFO|WARNING|ERROR|CRITICAL) +(?:\[([^\]]*)\] )?"
    r"|(?:[\w.]+ ){0,3}(ERROR|CRITICAL) \[([\w.]+:[^\]]*)\] "
)
_TORCH = lazy(r"\[[WEFI]\d{3,4} \d\d:\d\d:\d\d")
_TAG = _PROCESS.replace(r"\(?", r"\(", 1)
_GLUED = lazy(rf"(?:{_TAG}){{0,8}}{_STAMP}|(?:{_TAG})(?=Traceback \(|  File \"|Process )")
_RAY_REPEATED = lazy(r"\s*\[repeated \d+x across cluster\](?: \(Ray deduplicates logs.*)?$")
_OWN_WORDS = lazy(
    r"vLLM API server version \S+ *|Automatically detected platform \w+\. *|(?:Engine \d+: )?Avg [\w .:/,%-]+|"
    r"EngineCore failed to start\. *"
)
_ACCESS = lazy(r'INFO: +\S+ - "[^"]*" \d{3}(?= |$)')


_STARTS = frozenset("(DIWEC")
_MAX_CHAINS = 1024
_MAX_REFUSED = 64
"""Places in a line that look like a prefix and are none, after which the line is left alone."""


class RecordKey(NamedTuple):
    """What all physical lines of one record have in common."""

    logger: str
    level: str
    time: str | None
    file: str
    line: int


class Prefixed(NamedTuple):
    """A line whose prefixes are known."""

    chain: str
    """The process prefixes as they stand, outermost first; "" if there is none."""
    process: str | None
    """The innermost process's name."""
    pid: int | None
    record: RecordKey | None
    """None for a raw line: a traceback on stderr, a banner, the rest of a message."""
    text: str


def read_prefix(text: str) -> Prefixed:
    """Split a line into process prefixes, record prefix and the text behind them. Text is never looked into."""
    chain, process, pid = "", None, None
    if "pid=" in text[:60]:
        chain, process, pid = _chain(text)
        text = text[len(chain) :]
    if text.endswith(("across cluster]", "log-deduplication for more options.)", "options.)")):
        text = _RAY_REPEATED.sub("", text)
    key, start = _record(text)
    if key is not None and key.logger == "lmcache-old":
        text = _LMCACHE_OLD_END.sub("", text)
    return Prefixed(chain, process, pid, key, text[start:] if start else text)


_known_chains: dict[str, tuple[str, str | None, int | None]] = {}
"""Chains that stand alone in front of a line, by their text: a log has a few, on millions of lines."""


def _chain(text: str) -> tuple[str, str | None, int | None]:
    end = text.find(") ") + 2
    known = _known_chains.get(text[:end])
    if known is not None and text[end : end + 1] != "(":
        return known
    hit = _CHAIN.match(text)
    if hit is None:
        return "", None, None
    inner = _INNERMOST.search(hit.group())
    found = (
        hit.group().rstrip() + " ",
        (inner.group(1).strip() or None) if inner else None,
        int(inner.group(2)) if inner else None,
    )
    if len(_known_chains) < _MAX_CHAINS:
        _known_chains[found[0]] = found
    return found


def _record(text: str) -> tuple[RecordKey | None, int]:
    head = text[:1]
    if not head or head in " \t|^":
        return None, 0
    if hit := _RECORD.match(text):
        level, time, file, line = hit.groups()
        return RecordKey("vllm", level, time, file, int(line)), hit.end()
    if head == "[":
        if hit := _LMCACHE.match(text):
            return RecordKey("lmcache", hit.group(2), hit.group(1), "", 0), hit.end()
        if _TORCH.match(text):
            return RecordKey("torch", "WARNING", None, "", 0), 0
    if hit := _UVICORN.match(text):
        padded = text.startswith(" ", hit.end()) and not text[hit.end() : _UVICORN_COLUMNS].strip()
        return RecordKey("uvicorn", hit.group(1), None, "", 0), _UVICORN_COLUMNS if padded else hit.end() + 1
    if hit := _LMCACHE_OLD.match(text):
        return RecordKey("lmcache-old", hit.group(1), None, "", 0), hit.end()
    if (head.isdigit() or " [" in text[:60]) and (hit := _OTHER.match(text)):
        return RecordKey("other", hit.group(1) or hit.group(3), None, hit.group(2) or hit.group(4) or "", 0), hit.end()
    return None, 0


def lmcache_end(text: str) -> int | None:
    """Return where the ` (file.py:172:lmcache.module)` at the end of an LMCache record begins, or None."""
    hit = _LMCACHE_END.search(text) if text.endswith(")") and ".py:" in text else None
    return hit.start() if hit else None


def unglue(text: str) -> list[str]:
    """Split a line at record prefixes that stand in its middle because two writes, or a copy, ran together.

    A client's text can imitate a prefix, so this is done only where that does no harm: behind raw text of the process
    itself, behind a complete access line (whose path uvicorn escapes) or a sentence that quotes nobody, or where the
    prefix is that of the same record once more; and never inside a Python string literal. A line that goes on behind
    an access line or such a sentence is a flattened copy.
    """
    own = _GLUED.match(text) if text[:1] in _STARTS else None
    position = own.end() if own else 1
    chain = len(read_prefix(text).chain) if not own and "pid=" in text else 0
    if text.find(".py:", position) < 0 and text.find("pid=", max(position, chain)) < 0:
        return [text]
    start, flattened, refused = 0, False, 0
    pieces: list[str] = []
    while hit := _GLUED.search(text, position):
        position = hit.end()
        head = text[start : hit.start()]
        prefixed = read_prefix(head)
        bare = head[len(prefixed.chain) :]
        flattened = flattened or _ACCESS.match(bare) is not None or _OWN_WORDS.fullmatch(prefixed.text) is not None
        if (flattened or _is_own_text(head, hit.group())) and not _inside_literal(head):
            pieces.append(head.rstrip())
            start = hit.start()
        elif (refused := refused + 1) > _MAX_REFUSED:
            break
    pieces.append(text[start:])
    return [piece for piece in pieces if piece]


def _is_own_text(head: str, prefix: str) -> bool:
    """Whether no client can have written the text before `prefix`; a prefix that repeats its record's opens nothing new."""
    record = read_prefix(head).record
    return record is None or record == read_prefix(prefix).record


def _inside_literal(text: str) -> bool:
    """Follow the quotes of a Python repr; an apostrophe inside a word is none."""
    quote, position = "", 0
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"" and not (position and text[position - 1].isalnum()):
            quote = char
        position += 1
    return bool(quote)
