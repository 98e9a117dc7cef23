"""What a command was asked to do: one immutable value, made by the CLI, read by everything behind it."""

from typing import NamedTuple  # no annotations from __future__: it would compile each


class ScanConfig(NamedTuple):
    """The arguments of `lmdiag scan`."""

    paths: tuple[str, ...]
    format: str = "text"
    """text, markdown or jsonl."""
    rules: tuple[str, ...] = ()
    """A site's own card directories; later ones win."""
    disabled: tuple[str, ...] = ()
    """Ids of cards that are not to be used."""
    rotated: bool = False
    """Read the rotated siblings of a named file too, oldest first."""
    fail_on: str = "warning"
    """The least severity for which the exit code is 1."""
    exit_zero: bool = False
    color: bool | None = None
    """None: as the terminal and NO_COLOR say."""
    width: int | None = None
    """Columns; None: the terminal's."""
    progress: bool = True
    verbose: bool = False
    jobs: int = 0
    """Processes for several files; 0: one for each core."""
    since: str = ""
    """The moment from which on logs are read, as it was typed; "": from their beginning."""
    until: str = ""
    """The moment up to which they are read; "": to their end."""
    last: str = ""
    """How long before its newest line each log is read from; "": as `since` says."""


class SinkConfig(NamedTuple):
    """One `[sinks.NAME]` of the configuration. Times are seconds, sizes bytes; a file's name is never its content."""

    name: str
    type: str
    """The module of `lmdiag.forward.sinks` that serves it, with - for _."""
    severity: str = "warning"
    """The least severity that goes there."""
    scopes: tuple[str, ...] = ("startup", "runtime")
    cards: tuple[str, ...] = ()
    """Globs of card ids, "none" for an incident without a card; one that begins with ! excludes. Empty: all."""
    tags: tuple[str, ...] = ()
    """The same for the tags of the card: any of them fits."""
    sources: tuple[str, ...] = ()
    """The same for the names of sources."""
    states: tuple[str, ...] = ("opened", "repeated", "resolved")
    cooldown: float = 300.0
    """Between two reports of an incident that stays as it is."""
    burst: int = 0
    """Reports within a minute beyond which the rest of them become one summary; 0: no limit."""
    timeout: float = 10.0
    """A whole request, from the look-up of the name to the end of the answer; a program's run."""
    url: str = ""
    url_file: str = ""
    """For URLs that are secrets themselves. All files: a path, or the name of a systemd credential."""
    token_file: str = ""
    """Sent as `Authorization: Bearer`."""
    username: str = ""
    password_file: str = ""
    secret_file: str = ""
    """The keys of signatures, one a line: `whsec_` and base64."""
    routing_key_file: str = ""
    ca_file: str = ""
    """Trusted instead of the system's authorities."""
    cert_file: str = ""
    """Our own certificate, with its key unless `key_file` names it."""
    key_file: str = ""
    form: str = "standard"
    """standard (Standard Webhooks) or cloudevents."""
    hold: float = 3600.0
    """How long an alert lasts of which nothing more is heard."""
    resend: float = 60.0
    """How often alerts that are active are sent again."""
    labels: tuple[tuple[str, str], ...] = ()
    """Added to each alert."""
    path: str = ""
    max_size: int = 64 << 20
    keep: int = 5
    """Rotated files that are kept beside the current one."""
    command: tuple[str, ...] = ()
    """A program and its arguments; no shell reads it."""


class WatchConfig(NamedTuple):
    """The settings of `lmdiag watch`; their defaults stand here only. Times are seconds, sizes bytes."""

    paths: tuple[str, ...] = ()
    journal: tuple[str, ...] = ()
    """Units whose journal is followed."""
    from_: str = "life"
    """Where a source that was never read begins: life (the server's current life), start, end or boot."""
    rules: tuple[str, ...] = ()
    """A site's own card directories; later ones win."""
    disabled: tuple[str, ...] = ()
    """Ids of cards that are not to be used."""
    state: str = "/var/lib/lmdiag"
    """The directory of state.db."""
    listen: str = "127.0.0.1:9477"
    """HOST:PORT of /metrics and /healthz; "": none."""
    settle: float = 1.0
    """An incident is reported when nothing was added to it for so long."""
    quiet: float = 3600.0
    """An incident is resolved when its cause was not seen for so long."""
    quiet_down: float = 86400.0
    """The same for an incident whose server went down and did not come back."""
    remind: tuple[float, ...] = (300.0, 900.0, 3600.0, 14400.0, 86400.0)
    """Pauses between two reports of an incident that repeats; the last one stays. None: it is told once."""
    poll: str = "auto"
    """auto: where notification is deaf; always: everywhere."""
    poll_interval: float = 0.1
    scan_interval: float = 5.0
    """How often new files are looked for."""
    max_behind: int = 64 << 20
    """Unread bytes of a source: from a quarter of them on, blocks that only repeat are left out, and counted."""
    max_cpu: float = 0.5
    """Cores."""
    format: str = "text"
    """text or jsonl."""
    color: bool | None = None
    """None: as the terminal and NO_COLOR say."""
    width: int | None = None
    """Columns; None: the terminal's."""
    live: bool | None = None
    """The live view; None: on a terminal."""
    once: bool = False
    """Read what is there now, report, save the state and end."""
    severity: str = "warning"
    """The least severity that is reported; what is below is counted."""
    sinks: tuple[SinkConfig, ...] = ()
    """Where reports are forwarded to."""
    instance: str = ""
    """This node's name in alerts; "": the host's."""
    outbox_age: float = 7 * 86400.0
    """How long a dead letter is kept."""
    outbox_size: int = 64 << 20
    """Of the outbox; the oldest dead letters go first."""
