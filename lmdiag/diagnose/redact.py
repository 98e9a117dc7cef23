"""Takes secrets and clients' text out, once, where an incident is made: every report and sink gets redacted text only.

vLLM prints `hf_token` and `api_key` in clear up to at least 0.26; prompts stand in request lines, in error payloads and
in pydantic's `input_value`. Names are found by one linear pattern and their values are walked over by hand, so that no
text of a client costs more than its length.
"""

from __future__ import annotations

import re

from lmdiag.lazy_pattern import lazy

HIDDEN = "[redacted]"
_NAMED = lazy(r"(?<![\w-])(-{0,2}[\w-]{1,64})(['\"]?\s{0,3}[:=]\s{0,3}|(?<=[a-z]) (?=\S))")
_SECRET = lazy(
    r"(?:.*_)?(?:api_?keys?|access_?keys?(?:_id)?|account_?key|shared_?access_?key|auth(?:orization|_?key)?|bearer|credentials?|"
    r"\w*token|passw(?:or)?d|passphrase|pwd|pass|pem|private_?key|secrets?|\w*secret_?(?:access_?)?key|cookies?|session(?:_id)?|"
    r"sig|signature|otel\w*headers|ssl_keyfile_password)$"
)
_HEADERS = lazy(r"(?:proxy_)?authorization$|(?:set_)?cookies?$")
_CLIENT = lazy(
    r"prompts?|messages?_?list|messages|content|inputs?|input_text|conversation|documents?|chat_template|prompt_text|suffix|"
    r"(?:\w+_)?token_ids?|multi_modal_data"
)
_CLIENT_STRING = lazy(r"text|body|system|query")
_PYDANTIC_END = ", input_type="
_SHAPES = tuple(
    (lazy(pattern, re.DOTALL | (re.IGNORECASE if fold else 0)), replacement)
    for pattern, replacement, fold in (
        (r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)", HIDDEN, False),
        (r"\b(Bearer|Basic)\s{1,3}[\w.~+/=-]{6,2000}", rf"\1 {HIDDEN}", True),
        (r"\b(?:hf_|sk-|gh[pos]_|github_pat_|xox[abprs]-|AKIA|ASIA|nvapi-|glpat-|AIza|dop_v1_)[\w-]{12,256}", HIDDEN, False),
        (r"\beyJ[\w-]{8,2000}\.[\w-]{8,2000}\.[\w-]{0,2000}", HIDDEN, False),
        # a password may hold @ and / itself; a port in front of a path is none
        (
            r"(\b[a-z][a-z0-9+.-]{0,20}://)(?:[^\s/@'\":]{0,256}:(?!\d{1,5}/)[^\s'\"]{1,256}|[^\s/@'\"]{1,256})@",
            rf"\1{HIDDEN}@",
            True,
        ),
        (r"([?&][\w-]{0,64}(?:token|key|secret|sig|signature|password|credential)=)[^&\s'\"]{1,2000}", rf"\1{HIDDEN}", True),
        (r"(\bapi[_ -]?key:? )(?!is\b|was\b|and\b|or\b|to\b)[\w-]{8,256}", rf"\1{HIDDEN}", True),
        (r"(JSON body: |token_chunk start: ?).*", rf"\1{HIDDEN}", False),
    )
)  # fmt: skip
_OPENING = {"[": "]", "(": ")", "{": "}"}


def redact(text: str) -> str:
    """Return the text with credentials and clients' text replaced. Linear in the length of the text."""
    pieces, position = [], 0
    while hit := _NAMED.search(text, position):
        end = _value_end(text, hit)
        pieces.append(text[position : hit.end()] + ("" if end is None else HIDDEN))
        position = hit.end() if end is None else end
    text = "".join(pieces) + text[position:]
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    return text


def redacted(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, redacted, and say how many are missing.

    Only four times the limit is looked at, so that a message of megabytes costs no more than a long one.
    """
    head = redact(text[: 4 * limit])
    missing = max(0, len(head) - limit) + max(0, len(text) - 4 * limit)
    return f"{head[:limit]} […{missing} more characters]" if missing else head


def _value_end(text: str, hit: re.Match[str]) -> int | None:
    """Return where the value behind a name ends if it must be hidden, else None."""
    name, start = hit.group(1).lstrip("-").replace("-", "_").lower(), hit.end()
    flag = hit.group(2) == " "
    if flag and not hit.group(1).startswith("--"):
        return None
    if name == "input_value":
        return None if text.startswith("ArgsKwargs", start) else _until(text, start, _PYDANTIC_END)
    rest = text[start : start + 5]
    if not rest or rest.startswith(("None", "null", "'***", '"***', "***", HIDDEN[:5])):
        return None
    if _HEADERS.match(name) and not flag:
        return _line_end(text, start)
    if _SECRET.match(name) or (name == "tokens" and rest[:2] in ("['", '["')):
        return walk(text, start)
    if _CLIENT.fullmatch(name) and rest[0] in "'\"[({bru":
        return walk(text, start)
    return walk(text, start) if _CLIENT_STRING.fullmatch(name) and rest[0] in "'\"" else None


def _until(text: str, start: int, mark: str) -> int:
    end = text.find(mark, start)
    return len(text) if end < 0 else end


def _line_end(text: str, start: int) -> int:
    """A header's value goes on to the end of the line, or of the literal that it stands in."""
    if text[start : start + 1] in "'\"":
        return walk(text, start)
    end = re.compile(r"['\"\n,}]|$").search(text, start)
    return end.start() if end else len(text)


def walk(text: str, start: int) -> int:
    """Return the end of the value at `start`: a string literal, a bracketed value, or a word. A cut one ends with the text."""
    quoted = re.compile(r"[bruBRU]{0,2}(['\"])").match(text, start)
    if quoted:
        return _literal_end(text, quoted.end(), quoted.group(1))
    if text[start : start + 1] not in _OPENING:
        end = re.compile(r"[\s,;})\]'\"&]").search(text, start)
        return end.start() if end else len(text)
    depth, position = 0, start
    while position < len(text):
        char = text[position]
        position += 1
        if char in "'\"":
            position = _literal_end(text, position, char)
        elif char in _OPENING:
            depth += 1
        elif char in "])}":
            depth -= 1
            if depth == 0:
                return position
    return len(text)


def _literal_end(text: str, start: int, quote: str) -> int:
    position = start
    while position < len(text):
        char = text[position]
        position += 2 if char == "\\" else 1
        if char == quote:
            return position
    return len(text)
