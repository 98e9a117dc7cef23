"""Takes secrets and prompts out of text, once, where an incident is made: every report and sink gets redacted text only.

vLLM prints `hf_token` and `api_key` in clear up to at least 0.26; prompts stand in request lines, in error payloads and
in pydantic's `input_value`.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"
_NAME = (
    r"(?:\w*[_-])?(?:api[_-]?keys?|access[_-]?key(?:[_-]?id)?|auth(?:orization)?|credentials?|hf[_-]?token|passw(?:or)?d|passphrase|"
    r"private[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|ssl[_-]?keyfile[_-]?password|(?:bearer|refresh|access|auth|github|slack|wandb)?[_-]?token)"
)
_STRING = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_VALUE = rf"(?:\[[^\]]*\]|{_STRING}|(?!None\b|null\b|'?\*+)[^\s,;}})\]'\"]+)"
_SECRETS = (
    (re.compile(rf"((?<![\w-]){_NAME}['\"]?\s*[:=]\s*){_VALUE}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"(--{_NAME}[ =])(?:{_STRING}|\S+)", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"\b(?:hf_|sk-|ghp_|gho_|ghs_|github_pat_|xox[abprs]-|AKIA|ASIA|nvapi-|glpat-|AIza|dop_v1_)[\w-]{12,}"
        ),
        HIDDEN,
    ),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), HIDDEN),
    (re.compile(r"(\w[\w+.-]*://)[^\s/@:'\"]*:[^\s/@'\"]+@"), rf"\1{HIDDEN}@"),
    (
        re.compile(r"([?&](?:\w*(?:token|key|secret|sig|signature|password))=)[^&\s'\"]+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
)
_CLIENT_KEYS = (
    r"(?:prompts?|content|messages|input_text|text|body|prompt_text|system|query|documents?|suffix)['\"]?\s*[:=]\s*"
)
_PROMPTS = (
    (re.compile(rf"((?<![\w-])['\"]?{_CLIENT_KEYS}){_STRING}"), rf"\1{HIDDEN}"),
    (
        re.compile(r"((?<![\w-])['\"]?(?:messages|prompts?|inputs?|conversation)['\"]?\s*[:=]\s*)[\[{].*", re.DOTALL),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(r"((?:\w*token_ids?|token_chunk|multi_modal_data)['\"]?\s*[:=]\s*(?:start:)?)[\[(][^\])]*[\])]?"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(JSON body: ).*", re.DOTALL), rf"\1{HIDDEN}"),
    (re.compile(r"(input_value=)(?!ArgsKwargs).*?(, input_type=)", re.DOTALL), rf"\1{HIDDEN}\2"),
)
_MAYBE = re.compile(
    r"key|token|secret|passw|passphrase|auth|credential|bearer|basic|://|hf_|sk-|gh[pos]_|xox|AKIA|ASIA|eyJ|AIza|prompt|content|messages|text|"
    r"body|input|conversation|system|query|document|suffix|multi_modal|glpat|nvapi|dop_v1|github_pat",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return the text with credentials and clients' text replaced; bounded work for text of any length."""
    if not _MAYBE.search(text):
        return text
    for pattern, replacement in _SECRETS + _PROMPTS:
        text = pattern.sub(replacement, text)
    return text


def redacted(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, redacted, and say how many are missing.

    Only four times the limit is looked at, so that a message of megabytes costs no more than a long one.
    """
    head = redact(text[: 4 * limit])
    missing = max(0, len(head) - limit) + max(0, len(text) - 4 * limit)
    return f"{head[:limit]} […{missing} more characters]" if missing else head
