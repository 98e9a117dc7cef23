"""The values that flow from stage to stage: immutable, and without behaviour beyond properties.

They are named tuples and not frozen dataclasses, because importing `dataclasses` costs a scan about one whole
interpreter start, which the operator waits for. Their annotations are types, not texts (there is no `from __future__ import
annotations`): `NamedTuple` would compile each text.
"""

from typing import NamedTuple

Severity = str
"""One of SEVERITIES."""

SEVERITIES = ("info", "warning", "error", "critical")
"""From the least to the worst, so that `SEVERITIES.index` compares them."""

SCOPES = ("startup", "runtime", "request")
"""When an error strikes. `request` is the client's own mistake, which never pages anybody."""

OUTCOMES = ("start_failed", "died", "degraded", "request_failed", "running", "unknown")
"""What the log shows to have happened to the server."""

FAILURES = ("start_failed", "died")
"""The outcomes after which there is no server."""

RISKS = ("safe", "disruptive")


class Line(NamedTuple):
    """One physical line of a source, without its line end."""

    source: str
    number: int
    """Counted from 1."""
    offset: int
    """Byte offset of the line's start in the (decompressed) source."""
    text: str
    truncated: bool = False
    """The line was longer than the reader's limit and its tail was dropped."""


class Frame(NamedTuple):
    """One `File "…", line N, in f` of a traceback."""

    file: str
    line: int
    function: str


class ExceptionInfo(NamedTuple):
    """One exception of a traceback."""

    type: str | None
    """As printed, possibly dotted. None where the log quotes a message without its type."""
    message: str
    frames: tuple[Frame, ...] = ()
    relation: str | None = None
    """How the one before it in the traceback led to it: "cause", "context", "group"; None for the first."""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The type without its module: `vllm.exceptions.VLLMValidationError` is `VLLMValidationError`."""
        return (self.type or "").rsplit(".", 1)[-1]


class Origin(NamedTuple):
    """Where in the log something stands, and which process said it."""

    source: str
    first_line: int
    last_line: int
    process: str | None = None
    pid: int | None = None
    service: str = ""
    """The container, pod or unit that the line came from, where the log holds several."""


class Record(NamedTuple):
    """One log record that matters to a diagnosis though it carries no traceback."""

    origin: Origin
    level: str
    """DEBUG … CRITICAL, or "" for a bare line."""
    file: str
    """The file of `[file.py:NN]`, or ""."""
    text: str
    """Lines are joined by a newline."""
    time: str | None = None
    logger: str = "vllm"
    """Whose format the record has: vllm, lmcache, uvicorn, argparse, bare."""
    truncated: bool = False


class Traceback(NamedTuple):
    """A chain of exceptions, in the order of the log: the last one is what was caught or what ended the process."""

    origin: Origin
    exceptions: tuple[ExceptionInfo, ...]
    header: str = ""
    """The text that stood right before `Traceback`, in the same record or on the line before."""
    level: str = ""
    file: str = ""
    time: str | None = None
    logger: str = "vllm"
    truncated: bool = False
    """It has no exception line (the process was killed), or its head is cut off."""
    lines: tuple[str, ...] = ()
    """The text of its last lines, for the evidence; bounded."""


class Solution(NamedTuple):
    """One thing to do about an error."""

    text: str
    change: tuple[tuple[str, str], ...] = ()
    """(flag, environment variable or LMCache key, new value)."""
    risk: str = "safe"
    unless: str = ""
    """Facts that make this advice wrong here."""
    when: str = ""
    """Facts without which it is not given; "": none are needed."""


class Case(NamedTuple):
    """One of several causes of the same message, told apart by what else the log says."""

    when: str
    text: str


class Clue(NamedTuple):
    """What else a card wants to know of the log: how a record or an exception's message begins."""

    card: str
    name: str
    message: str
    """A template; what its holes capture is `log.<name>.<hole>`."""


class RaiseSite(NamedTuple):
    """Where a message is raised, over the versions of a project."""

    project: str
    """vllm, lmcache, transformers, …"""
    file: str
    """Path from the root of the repository."""
    function: str
    lines: tuple[tuple[str, int], ...]
    """(first version with this line, line of the `raise`), ascending."""
    last: str = ""
    """The last version that has it; "" while the newest still does."""


class MatchRule(NamedTuple):
    """One `[[match]]` of a card: a message template, and what else must hold."""

    card: str
    message: str
    """Literal text with {named} holes."""
    types: tuple[str, ...]
    """Exception names without module; empty: any."""
    raised_in: tuple[str, ...] = ()
    """`path.py:function` endings, one of which a frame must have; empty: any."""
    pattern: str = ""
    """Instead of a template: a regular expression to search the message with; its named groups are fields."""


class Sample(NamedTuple):
    """A log excerpt of a card, and what it must give (nothing for a near miss)."""

    log: str
    fields: tuple[tuple[str, str], ...] = ()
    change: tuple[tuple[str, str], ...] = ()
    """Changes that the advice must hold, with this log's values."""


class Card(NamedTuple):
    """A fix card: what an error means, why it strikes, what to change."""

    id: str
    title: str
    severity: Severity
    scope: str
    tags: tuple[str, ...]
    rules: tuple[MatchRule, ...]
    meaning: str
    trigger: str
    situations: tuple[str, ...]
    solutions: tuple[Solution, ...]
    example_before: str = ""
    example_after: str = ""
    verify: str = ""
    related: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    raised_at: tuple[RaiseSite, ...] = ()
    aliases: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()
    near_misses: tuple[Sample, ...] = ()
    path: str = ""
    clues: tuple[Clue, ...] = ()
    cases: tuple[Case, ...] = ()


class Match(NamedTuple):
    """A card that fits an exception."""

    card: str
    fields: tuple[tuple[str, str], ...]
    confidence: str
    """exact: the whole message; embedded: the message stands inside a longer one; partial: the log cut it off."""


class Facts(NamedTuple):
    """What the log says about the server."""

    vllm_version: str | None = None
    lmcache_version: str | None = None
    model: str | None = None
    architecture: str | None = None
    platform: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    """Arguments that differ from their default, redacted, in the log's order; values as Python reprs."""
    restarts: int = 0


class SourceLine(NamedTuple):
    """A line of a released file."""

    version: str
    file: str
    line: int
    function: str
    url: str | None


class Rewording(NamedTuple):
    """What a message was changed to."""

    version: str
    """The first release that has the new wording."""
    id: str
    """Of the new wording, in the catalogue."""
    message: str
    """A template: holes are `{name}`."""


class RaisedAt(NamedTuple):
    """The raise site of an incident's root in the version that ran, and what the releases did to it."""

    project: str
    """The package: vllm, lmcache, transformers, …"""
    version: str | None
    file: str | None
    line: int | None
    function: str | None
    url: str | None
    told_by: str = "traceback"
    """What names the place: traceback, catalog, card, or words (a known saying of another package)."""
    catalog: str | None = None
    """Id of the message in the catalogue of raise sites; what follows is known only with it."""
    confidence: str | None = None
    """certain, probable or candidate: how sure it is that this is the message's raise site."""
    since: str | None = None
    """The first release that has the message."""
    until: str | None = None
    """The last one; None while the newest still has it."""
    now: SourceLine | None = None
    """Where the newest release that has it raises it, if that is another line."""
    reworded: Rewording | None = None
    contradiction: str | None = None
    """Why the stated version cannot be the one that ran."""
    by_line: str | None = None
    """The releases whose line this is, where the log states no version or another one."""
    elsewhere: int = 0
    """How many other functions raise the same message, where no frame tells which one it was."""


class Root(NamedTuple):
    """The cause. `type` is None where it is not an exception (a killed worker) or its type is not in the log."""

    type: str | None
    message: str
    process: str | None
    pid: int | None


class Symptom(NamedTuple):
    """An exception that followed from the root."""

    type: str | None
    message: str
    process: str | None


class Edit(NamedTuple):
    """A change as the operator makes it, in one of the places where it can be made."""

    place: str
    """One of PLACES."""
    before: str | None
    """As the log shows it now; None where it is not set, or the log does not say."""
    after: str | None
    """None: it is taken away."""


PLACES = ("command line", "environment", "LMCache YAML", "kv_connector_extra_config")


class Advice(NamedTuple):
    """A solution made for this server."""

    text: str
    change: tuple[tuple[str, str], ...]
    risk: str
    edits: tuple[Edit, ...] = ()
    """The change in this server's own terms; an LMCache setting has one for each place where it may stand."""


class ClueSeen(NamedTuple):
    """A clue that was found in the log. Its text is redacted in an incident."""

    name: str
    line: int
    text: str
    fields: tuple[tuple[str, str], ...]


class Earlier(NamedTuple):
    """A failed start before the one that is reported, with another cause."""

    type: str | None
    message: str
    card: str | None
    source: str
    line: int


class Loop(NamedTuple):
    """A crash loop: the server failed of the same cause again and again, so that a restart will not help."""

    times: int
    seconds: float
    """From the first of these failures to the last one."""


class Incident(NamedTuple):
    """One failure, however many processes and echoes reported it. Its text is redacted."""

    id: str
    fingerprint: str
    state: str
    card: str | None
    title: str
    severity: Severity
    scope: str
    confidence: str
    """exact, embedded, partial (the card's match) or none."""
    cause_visible: bool
    outcome: str
    root: Root | None
    raised_at: RaisedAt | None
    symptoms: tuple[Symptom, ...]
    fields: tuple[tuple[str, str], ...]
    facts: Facts
    advice: tuple[Advice, ...]
    occurrences: int
    """How often it happened: once for each process and life of a server, or for each request. In JSON: count."""
    processes: tuple[str, ...]
    first_seen: str | None
    last_seen: str | None
    source: str
    first_line: int
    last_line: int
    evidence: tuple[str, ...]
    earlier: tuple[Earlier, ...] = ()
    reason: str | None = None
    """Which of several causes of the same message it was here, as far as the log tells."""
    clues: tuple[ClueSeen, ...] = ()
    """What told it, and what else the card asked for."""
    loop: Loop | None = None
    """Only a daemon sees one: it has watched the restarts."""


class Summary(NamedTuple):
    """What a scan read, what it could not, and what it found."""

    sources: int = 0
    lines: int = 0
    bytes: int = 0
    undecodable_lines: int = 0
    truncated_lines: int = 0
    records: int = 0
    tracebacks: int = 0
    dropped_tracebacks: int = 0
    """Beyond the bounds of the pipeline: counted, not kept."""
    skipped: tuple[tuple[str, str], ...] = ()
    """(path, reason) of inputs that were not read, or not to their end."""
    by_severity: tuple[tuple[str, int], ...] = ()
    by_card: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0
    interrupted: bool = False
    muted_patterns: tuple[tuple[str, int], ...] = ()
    """(card, how often its pattern was stopped or left out) of patterns that took too long on a message."""
