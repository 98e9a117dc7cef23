from __future__ import annotations

import pytest

from lmdiag.settings.places import Places

TEXT = """\
# settle = 1
settle = "1s"
"max-cpu" = 1
sinks.dotted.url = "x"
[ sinks . "oncall" ]
  url="x"
url-file = "y"
[sinks.fleet.labels]
a = "b"
[sinks]
inline = { url = "x" }
[sinks.settle]
quiet = 1
"""


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (("settle",), "c:2: settle"),
        (("max-cpu",), "c:3: max-cpu"),
        (("sinks",), "c:10: sinks"),
        (("sinks", "dotted", "url"), "c:4: sinks.dotted.url"),
        (("sinks", "oncall"), "c:5: sinks.oncall"),
        (("sinks", "oncall", "url"), "c:6: sinks.oncall.url"),
        (("sinks", "oncall", "url-file"), "c:7: sinks.oncall.url-file"),
        (("sinks", "fleet"), "c:8: sinks.fleet"),
        (("sinks", "fleet", "labels"), "c:8: sinks.fleet.labels"),
        (("sinks", "fleet", "labels", "a"), "c:9: sinks.fleet.labels.a"),
        (("sinks", "inline", "url"), "c:11: sinks.inline.url"),
        (("sinks", "settle", "quiet"), "c:13: sinks.settle.quiet"),
        (("quiet",), "c: quiet"),
    ],
)
def test_where_a_key_stands(keys: tuple[str, ...], place: str) -> None:
    assert Places("c", TEXT).of(*keys) == place


def test_a_key_is_no_pattern() -> None:
    assert Places("c", "a.b = 1\n").of("a(") == "c: a("
