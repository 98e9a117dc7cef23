"""The table of the settings of `lmdiag watch`: from it come the file's keys, the environment's names and the flags."""

from __future__ import annotations

from typing import Any, NamedTuple

from lmdiag.config import WatchConfig
from lmdiag.settings.amounts import Columns, Duration, Number, Size
from lmdiag.settings.values import Choice, Kind, Listen, ListOf, Name, Switch, Text, words

_YEAR = 365 * 86400.0


class Setting(NamedTuple):
    """One setting."""

    key: str
    """Its name in the file; with -- in front, the flag's."""
    kind: Kind
    metavar: str
    help: str
    """One sentence, without its dot."""
    renamed: str = ""
    """Its field in WatchConfig, where that is not the key with underscores."""
    flag_only: bool = False

    @property
    def field(self) -> str:
        """Its field in WatchConfig."""
        return self.renamed or self.key.replace("-", "_")

    @property
    def environment(self) -> str:
        """Its name in the environment."""
        return "LMDIAG_" + self.key.replace("-", "_").upper()

    @property
    def flag(self) -> str:
        """How the command line names it."""
        return "PATH" if self.key == "paths" else f"--{self.key}"

    @property
    def default(self) -> Any:
        """What holds if nobody says anything else."""
        return WatchConfig._field_defaults[self.field]


SETTINGS = (
    Setting(
        "paths",
        ListOf(Text("a path"), ":"),
        "PATH",
        "logs to follow: files, directories (with all below), quoted globs; - for standard input",
    ),
    Setting(
        "journal",
        ListOf(Text("a unit"), ","),
        "UNIT",
        "systemd units whose journal is followed, like vllm.service",
    ),
    Setting(
        "from",
        words("life", "start", "end", "boot"),
        "WHERE",
        "where to begin in a source that was never read: life (of the server that runs now), start, end or boot",
        renamed="from_",
    ),
    Setting(
        "rules",
        ListOf(Text("a directory"), ":"),
        "DIR",
        "directories of your own cards; they win over the shipped ones",
    ),
    Setting(
        "disable",
        ListOf(Text("a card's id"), ","),
        "ID",
        "cards that are not to be used",
        renamed="disabled",
    ),
    Setting(
        "state",
        Text("a directory"),
        "DIR",
        "the directory that keeps positions and incidents over restarts; without root ~/.local/state/lmdiag",
    ),
    Setting("listen", Listen(), "HOST:PORT", 'where /metrics and /healthz are served; "" for nowhere'),
    Setting(
        "severity",
        words("info", "warning", "error", "critical"),
        "SEVERITY",
        "the least severity that is reported; what is below is only counted",
    ),
    Setting(
        "settle",
        Duration(0.0, 60.0),
        "TIME",
        "an incident is reported when nothing was added to it for so long",
    ),
    Setting(
        "quiet",
        Duration(1.0, _YEAR),
        "TIME",
        "an incident is resolved when its cause was not seen for so long",
    ),
    Setting(
        "quiet-down",
        Duration(1.0, _YEAR),
        "TIME",
        "the same for an incident whose server went down and did not come back",
    ),
    Setting(
        "remind",
        ListOf(Duration(1.0, _YEAR), ",", rising=True),
        "TIME",
        "pauses between two reports of an incident that repeats; the last one stays",
    ),
    Setting(
        "poll",
        words("auto", "always"),
        "WHEN",
        "auto polls files where the kernel gives no notice of changes (NFS, Lustre); always polls all of them",
    ),
    Setting("poll-interval", Duration(0.01, 60.0), "TIME", "how often files that are polled are looked at"),
    Setting(
        "scan-interval", Duration(0.1, 3600.0), "TIME", "how often directories and globs are searched for new files"
    ),
    Setting(
        "max-behind",
        Size(64 << 10, 1 << 40),
        "SIZE",
        "unread bytes of a source; from a quarter of them on, blocks that only repeat are left out and counted",
    ),
    Setting("max-cpu", Number(0.01, 64.0), "CORES", "processor time that may be used, in cores: 0.5 is half of one"),
    Setting(
        "instance",
        Name("a node's name", empty=True),
        "NAME",
        "this node's name in what is forwarded; \"\" for the host's",
    ),
    Setting(
        "outbox-age",
        Duration(60.0, _YEAR),
        "TIME",
        "how long a report is kept that its receiver refused, or did not take for a day",
    ),
    Setting(
        "outbox-size",
        Size(1 << 20, 1 << 40),
        "SIZE",
        "what the outbox may hold; beyond it the oldest of those reports go first, and are counted",
    ),
    Setting("format", words("text", "jsonl"), "FORMAT", "how incidents are printed: text or jsonl"),
    Setting(
        "color",
        Choice({"auto": None, "always": True, "never": False}),
        "WHEN",
        "auto, always or never; NO_COLOR is honoured",
        flag_only=True,
    ),
    Setting("width", Columns(), "COLUMNS", "width of the text", flag_only=True),
    Setting("live", Switch(), "", "show what is going on in a live view (default: on a terminal)", flag_only=True),
    Setting("once", Switch(), "", "read what is there now, report, save the state and end", flag_only=True),
)
BY_KEY = {setting.key: setting for setting in SETTINGS}
IN_FILE = {setting.key: setting for setting in SETTINGS if not setting.flag_only}
