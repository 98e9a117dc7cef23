"""Which logs an alert is about: a pattern that its labels fill, and that they cannot lead out of its directory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from lmdiag.errors import LmdiagError, UsageError
from lmdiag.read.globs import MAGIC
from lmdiag.report.control import clip, one_line

_LABEL = re.compile(r"\{([a-zA-Z_][a-zA-Z0-9_]*)\}")
_SAFE = re.compile(r"[\w.:-]*[A-Za-z0-9][\w.:-]*", re.ASCII)
"""Neither a part of a path of its own (/), nor of a pattern (*?[]), nor a way up (..)."""
_SHOWN = 80


class LabelError(LmdiagError):
    """The labels of an alert name no log. Says which label, and why."""


class LogTemplate:
    """A pattern such as `/var/log/pods/{namespace}_{pod}_*/{container}/*.log`.

    Links below its directory are followed: whoever may write there (the kubelet does, of links) writes the logs too.
    """

    def __init__(self, template: str) -> None:
        """Raise UsageError if it has no label, or no directory that is always the same."""
        rest = _LABEL.sub("", template)
        self._template = template
        self.directory = os.path.dirname(re.split(r"[{*?[]", template, maxsplit=1)[0])
        if rest == template or "{" in rest or "}" in rest:
            raise UsageError(f"--logs {template}: it must hold the names of labels in braces, as {{pod}}")
        if not self.directory.strip("/") or ".." in template.split("/") or not template.startswith("/"):
            raise UsageError(f"--logs {template}: it must begin with a directory, as /var/log/vllm/{{instance}}.log")

    def pattern(self, labels: Mapping[str, str]) -> str:
        """Fill in an alert's labels. Raises LabelError if one is missing, or may not stand in a path."""
        filled = _LABEL.sub(lambda found: _value(found[1], labels), self._template)
        inside = os.path.commonpath((self.directory, os.path.normpath(filled))) == os.path.normpath(self.directory)
        if not inside:
            raise LabelError(f"the labels lead out of {self.directory}")
        return filled


def _value(name: str, labels: Mapping[str, str]) -> str:
    value = labels.get(name, "")
    if not value:
        raise LabelError(f"the alert has no label {name}, which --logs needs")
    if not _SAFE.fullmatch(value) or ".." in value or MAGIC.search(value):
        shown = clip(one_line(value), _SHOWN)
        raise LabelError(f"the label {name} is {shown!r}: only letters, digits and . _ : - may stand in a path")
    return value
