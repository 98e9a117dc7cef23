"""The table of the settings of a sink: which there are, for which types, and what each type needs."""

from __future__ import annotations

from typing import Any, NamedTuple

from lmdiag.config import SinkConfig
from lmdiag.model import SCOPES, SEVERITIES
from lmdiag.settings.amounts import Count, Duration, Size
from lmdiag.settings.sink_values import Command, File, Glob, Labels, Url
from lmdiag.settings.values import Kind, ListOf, Name, Text, words

SECRET_URL = ("slack", "teams", "discord", "apprise")
"""Whoever knows the URL of one of these may post there: it stands in a file."""
_ALERTS = ("alertmanager", "alertmanager-webhook")
_OPEN_URL = ("webhook", *_ALERTS)
_HTTP = (*_OPEN_URL, "slack", "pagerduty", "teams", "discord")
TYPES = (*_HTTP, "file", "exec", "apprise")
_YEAR = 365 * 86400.0
_WEEK = 7 * 86400.0


class SinkSetting(NamedTuple):
    """One setting of a sink."""

    key: str
    kind: Kind
    help: str
    """One sentence, without its dot."""
    types: tuple[str, ...] = TYPES
    """The types of sinks that know it."""

    @property
    def field(self) -> str:
        """Its field in SinkConfig."""
        return self.key.replace("-", "_")

    def default(self, type: str) -> Any:
        """What holds in a sink of this type if nobody says anything else; None: it must be given."""
        if self.key == "burst" and type in (*SECRET_URL, "pagerduty"):
            return 10  # people read these, and their services limit how much may be posted
        return SinkConfig._field_defaults.get(self.field)


SINK_SETTINGS = (
    SinkSetting("type", words(*TYPES), "what kind of receiver it is"),
    SinkSetting("url", Url(), "where to post", (*_OPEN_URL, "pagerduty")),
    SinkSetting("url-file", File(), "a file that holds the URL, for one that is a secret", (*_OPEN_URL, *SECRET_URL)),
    SinkSetting("routing-key-file", File(), "a file that holds the integration's key", ("pagerduty",)),
    SinkSetting("path", Text("a path"), "the file that lines of JSON are added to", ("file",)),
    SinkSetting(
        "command", Command(), "a program and its arguments; it reads JSON, and no shell is involved", ("exec",)
    ),
    SinkSetting("severity", words(*SEVERITIES), "the least severity that goes there"),
    SinkSetting(
        "scopes", ListOf(words(*SCOPES), ",", least=1), "when it struck: startup, runtime, request (a client's mistake)"
    ),
    SinkSetting(
        "states",
        ListOf(words("opened", "repeated", "resolved"), ",", least=1),
        "what goes there of an incident's life: opened, repeated, resolved",
    ),
    SinkSetting(
        "cards", ListOf(Glob("a glob of cards' ids"), ","), 'globs of card ids; ! excludes; "none" is an unknown error'
    ),
    SinkSetting("tags", ListOf(Glob("a glob of tags"), ","), "the same for the tags of the card"),
    SinkSetting("sources", ListOf(Glob("a glob of sources"), ","), "the same for the names of sources"),
    SinkSetting("cooldown", Duration(0.0, _YEAR), "pause between two reports of an incident that stays as it is"),
    SinkSetting(
        "burst",
        Count(0, 100_000),
        "reports a minute beyond which the rest become one summary; 0: no limit",
        tuple(one for one in TYPES if one not in _ALERTS),  # those group by themselves
    ),
    SinkSetting("timeout", Duration(0.1, 300.0), "how long a request, or a program, may take as a whole"),
    SinkSetting("token-file", File(), "a file that holds a token, sent as Authorization: Bearer", _HTTP),
    SinkSetting("username", Name("a user's name"), "sent with the password", _HTTP),
    SinkSetting("password-file", File(), "a file that holds the user's password", _HTTP),
    SinkSetting("ca-file", File(), "certificates to trust instead of the system's", _HTTP),
    SinkSetting("cert-file", File(), "our own certificate", _HTTP),
    SinkSetting("key-file", File(), "its key, unless cert-file holds it as well", _HTTP),
    SinkSetting("secret-file", File(), "keys of the signature, one a line, each whsec_ and base64", ("webhook",)),
    SinkSetting("form", words("standard", "cloudevents"), "Standard Webhooks or CloudEvents", ("webhook",)),
    SinkSetting("labels", Labels(), "added to each alert", _ALERTS),
    SinkSetting(
        "hold", Duration(60.0, _WEEK), "how long an alert lasts of which nothing more is heard", ("alertmanager",)
    ),
    SinkSetting("resend", Duration(5.0, 3600.0), "how often active alerts are sent again", ("alertmanager",)),
    SinkSetting("max-size", Size(4 << 10, 1 << 40), "the file is rotated before it grows beyond", ("file",)),
    SinkSetting("keep", Count(0, 1000), "rotated files that are kept", ("file",)),
)
BY_SINK_KEY = {setting.key: setting for setting in SINK_SETTINGS}
NEEDS = (
    dict.fromkeys(_OPEN_URL, ("url", "url-file"))
    | dict.fromkeys(SECRET_URL, ("url-file",))
    | {"pagerduty": ("routing-key-file",), "file": ("path",), "exec": ("command",)}
)
"""Of each type: exactly one of these must be given."""


def keys_of(type: str) -> dict[str, SinkSetting]:
    """List the settings that a sink of this type knows; of an unknown type, all there are."""
    return {key: setting for key, setting in BY_SINK_KEY.items() if type in setting.types or type not in TYPES}
