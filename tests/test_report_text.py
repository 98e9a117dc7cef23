from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from report_samples import ADAPTER, CARD, FACTS, HIDDEN, MATCHED, REQUEST, SUMMARY, UNMATCHED, URL, cards, with_message

from lmdiag.model import Advice, Incident, RaisedAt, SourceLine, Summary, Symptom
from lmdiag.report.text import print_report, wants_color

EVERYTHING = [REQUEST, UNMATCHED, MATCHED, HIDDEN]
HOSTILE = (
    "[red]markup[/red] \x1b[2J\x1b]0;title\x07 `ticks` ```` {format} %s $(id) \u202eevil \x00\x9b31m "
    "<script>alert(1)</script> @everyone | a [link](http://x.example) \udcff"
)


def show(
    *incidents: Incident, width: int | None = 100, color: bool | None = False, verbose: bool = False,
    summary: Summary = SUMMARY,
) -> str:  # fmt: skip
    file = io.StringIO()
    print_report(incidents, summary, cards, file=file, color=color, width=width, verbose=verbose)
    return file.getvalue()


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def headings(text: str) -> list[str]:
    return re.findall(r"(?m)^  ([A-Z](?:(?!  |: ).)*)$", text)


def test_the_most_important_stands_first() -> None:
    text = show(MATCHED)
    assert text.startswith(f"CRITICAL  start failed  {CARD.title}\n\n  ValueError: layerwise MLA connector")
    assert headings(text)[:8] == [
        "Meaning", "What to change", "Why it happened here", "Example", "Check afterwards", "Followed by",
        "Failed starts before this one", "From the log",
    ]  # fmt: skip


def test_where_and_how_often() -> None:
    text = show(MATCHED)
    assert "Where      Worker_TP0 (pid 4242), server.log:210-262\n" in text
    assert "Seen       3 times, in Worker_TP0, Worker_TP1; 12-01 02:00:00 to 12-01 02:00:05\n" in text
    assert "vllm_v1_adapter.py:508" in text
    assert "in _init_lmcache_engine (vLLM 0.26.0)" in text
    assert f" {URL}\n" in text


def test_the_history_of_the_raise_site() -> None:
    now = SourceLine("0.34.0", ADAPTER, 510, "_init_lmcache_engine", None)
    why = "the log says vllm 0.26.0, but this message is only in 0.30.0 to 0.34.0"
    assert MATCHED.raised_at is not None
    site = MATCHED.raised_at._replace(since="0.11.1", now=now, contradiction=why)
    text = show(MATCHED._replace(raised_at=site), width=120)
    assert "\n  In releases    0.11.1 to 0.34.0, now on line 510\n" in text
    assert f"\n  Contradiction  {why}\n" in text


def test_an_error_of_another_package_has_no_place() -> None:
    site = RaisedAt("transformers", None, None, None, None, None, "words")
    text = show(UNMATCHED._replace(raised_at=site))
    assert "  Raised by  transformers\n" in text
    assert "None" not in text


def test_changes_are_lines_to_copy() -> None:
    text = show(MATCHED)
    assert "    1. Set `use_layerwise` to `false`.\n" in text
    assert "         - use_layerwise: true  # LMCache YAML\n         + use_layerwise: false  # LMCache YAML\n    2." in text
    assert "         --kv-transfer-config '{}'\n         VLLM_X='a b'\n" in text
    assert "Disruptive: " not in text  # nothing runs that could be disrupted


def test_the_reason_stands_with_the_line_that_told_it() -> None:
    text = show(MATCHED)
    assert "  Why it happened here\n    The log shows an MLA model.\n    - server.log:12: Using MLA backend\n" in text


def test_a_change_cannot_break_out_of_its_quotes() -> None:
    hostile = MATCHED._replace(advice=(Advice("x", (("--model", "a'; rm -rf /; '\n`id`"),), "safe"),))
    assert """--model 'a'"'"'; rm -rf /; '"'"' `id`'\n""" in show(hostile)


def test_only_arguments_that_matter_are_shown() -> None:
    text = show(MATCHED)
    assert "    kv_transfer_config  KVTransferConfig(" in text
    assert "tensor_parallel_size" not in text
    assert "2 non-default arguments not shown" in text
    assert re.search(r"\n    tensor_parallel_size +8\n", show(MATCHED, verbose=True))


def test_a_message_makes_an_argument_matter() -> None:
    root = with_message("tensor_parallel_size must divide 61").root
    assert re.search(r"\n    tensor_parallel_size +8\n", show(MATCHED._replace(root=root)))


def test_followers_are_told_once() -> None:
    text = show(MATCHED)
    assert text.count("Engine core initialization failed. See root cause above.") == 1
    assert "WorkerProc initialization failed. (EngineCore_DP0)" in text


def test_many_followers_are_counted() -> None:
    many = MATCHED._replace(symptoms=tuple(Symptom("E", str(number), None) for number in range(20)))
    assert "    - and 14 more\n" in show(many)


def test_evidence_is_a_handful_that_ends_with_the_error() -> None:
    text = show(MATCHED)
    assert "… 4 lines left out" in text
    assert "ERROR line 11\n" in text
    assert "ERROR line 3\n" not in text


def test_without_a_card() -> None:
    text = show(UNMATCHED)
    assert text.startswith("ERROR  server died  AssertionError\n")
    assert "No card for this error yet" in text
    assert "lmdiag cards new -\n" in text  # quotes within quotes are for nobody to copy at night
    assert URL in text


def test_a_title_that_is_the_message_is_not_said_twice() -> None:
    text = show(UNMATCHED._replace(title="AssertionError: expected 16 heads, it's 12"))
    assert text.startswith("ERROR  server died  AssertionError\n\n  AssertionError: expected 16 heads, it's 12\n")


def test_a_message_like_a_flag_is_still_an_argument() -> None:
    assert "lmdiag cards new -- '--x is bad'\n" in show(with_message("--x is bad"))


def test_without_a_cause() -> None:
    text = show(HIDDEN)
    assert "The cause is not in this log" in text
    assert "the lines before server.log:210" in text
    for place in ("journalctl", "kubectl logs --previous", "/tmp/ray/session_latest/logs"):  # noqa: S108
        assert place in text
    assert "WorkerProc initialization failed." in text
    assert "lmdiag cards new" not in text


def test_clients_mistakes_come_last_and_are_short() -> None:
    text = show(REQUEST, MATCHED)
    assert text.startswith("CRITICAL")
    assert text.count("max_tokens must be at least 1") == 1
    tail = text[text.index("Clients' own mistakes") :].split("\n\n")[0].splitlines()
    assert tail[1:] == ["    - ValueError: max_tokens must be at least 1, got 0. (12 times, server.log:210-262)"]


def test_a_doubtful_match_says_so() -> None:
    assert "partial: the log cut the message off" in show(MATCHED._replace(confidence="partial"))


def test_all_solutions_ruled_out() -> None:
    assert f"`lmdiag explain {CARD.id}`" in show(MATCHED._replace(advice=()))


def test_the_end_says_what_was_read() -> None:
    text = " ".join(show(MATCHED).split())
    assert "Read 2 sources, 12,345 lines, 1.2 MB, in 0.42 s: 210 records, 4 tracebacks, 1 critical, 2 info; " in text
    assert "2 lines not valid UTF-8, 1 line cut for length, 5 tracebacks counted but not kept." in text
    assert "/logs/9.gz: not gzip - and 2 more" in text
    assert "/logs/10.gz" not in text


def test_nothing_found_is_one_line() -> None:
    text = show(summary=Summary(sources=1, lines=1, bytes=40, seconds=0.5))
    assert text == "No failure found in 1 source, 1 line, 40 B, in 0.50 s.\n"


def test_nothing_read_is_not_called_healthy() -> None:
    assert show(summary=Summary(sources=1)).startswith("Nothing read: 1 source, 0 lines")


def test_an_interrupted_scan_says_so() -> None:
    assert "Interrupted" in show(MATCHED, summary=SUMMARY._replace(interrupted=True))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
@pytest.mark.parametrize("verbose", [False, True])
def test_colour_changes_no_word(width: int, verbose: bool) -> None:
    incidents = [*EVERYTHING, with_message(HOSTILE), with_message("[bold]x[/bold] :smile: 世界 " * 9)]
    plain = show(*incidents, width=width, verbose=verbose)
    coloured = show(*incidents, width=width, verbose=verbose, color=True)
    assert "\x1b[" in coloured
    assert without_colour(coloured) == plain


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_only_code_paths_and_urls_leave_the_width(width: int) -> None:
    for line in show(*EVERYTHING, with_message("word " * 60), width=width).splitlines():
        assert len(line) <= width or re.search(r"https?://|vllm/|lmdiag cards new", line)


def test_prose_stays_narrow_on_a_wide_terminal() -> None:
    assert max(len(line) for line in show(HIDDEN, width=250).splitlines()) <= 100


@pytest.mark.parametrize("color", [False, True])
def test_text_of_a_log_is_only_text(color: bool) -> None:
    text = without_colour(show(with_message(HOSTILE), color=color))
    assert not [char for char in text if ord(char) < 32 and char != "\n"]
    assert not set("\x9b\u202e\udcff") & set(text)
    assert "ValueError: [red]markup[/red]" in text
    assert "<script>alert(1)</script> @everyone | a [link](http://x.example)" in " ".join(text.split())


def test_a_long_message_is_shortened_with_a_count() -> None:
    text = show(with_message("x" * 10_000))
    assert re.search(r"\[9,0\d\d characters left out\]", " ".join(text.split()))
    assert len(text) < 6000


def test_a_message_of_many_lines_is_shortened_with_a_count() -> None:
    assert "… 18 more lines" in show(with_message("\n".join(f"line {number}" for number in range(30))))


def test_unknown_facts_leave_no_gaps() -> None:
    facts = FACTS._replace(vllm_version=None, lmcache_version=None, model=None, arguments=(), restarts=0)
    bare = UNMATCHED._replace(facts=facts, raised_at=None)
    assert re.search(r"\n    server +model unknown \(DeepseekV3ForCausalLM\), on cuda\n", show(bare))


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


def test_colour_follows_the_terminal_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_color(_Terminal())
    assert not wants_color(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_color(_Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color(_Terminal())


def test_an_encoding_without_the_letter_does_not_fail() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_report([with_message("世界")], SUMMARY, cards, file=file, color=None, width=None, verbose=False)
    file.flush()
    assert b"ValueError: ??" in raw.getvalue()


SCRIPT = """
import sys
from report_samples import MATCHED, SUMMARY, cards
from lmdiag.report.text import print_report
print_report([MATCHED], SUMMARY, cards, file=sys.stdout, color=None, width=None, verbose=False)
heavy = {"rich", "json", "textwrap", "shutil", "dataclasses", "pathlib", "logging", "inspect"}
sys.stderr.write(" ".join(sorted(heavy & set(sys.modules))))
"""


def run(stdout: int, **environment: str) -> subprocess.CompletedProcess[str]:
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, os.path.dirname(here)])
    return subprocess.run(
        [sys.executable, "-S", "-c", SCRIPT] if environment.pop("bare", "") else [sys.executable, "-c", SCRIPT],
        stdout=stdout, stderr=subprocess.PIPE, text=True, check=True, env={"PYTHONPATH": path, **environment},
    )  # fmt: skip


def test_a_pipe_gets_plain_text_and_costs_no_heavy_import() -> None:
    done = run(subprocess.PIPE, bare="1", TERM="xterm")
    assert done.stderr == ""
    assert done.stdout == show(MATCHED)


def test_a_terminal_gets_colour() -> None:
    master, slave = pty.openpty()
    try:
        assert "rich" in run(slave, TERM="xterm", COLUMNS="80").stderr
        assert b"\x1b[" in os.read(master, 4096)
    finally:
        os.close(master)
        os.close(slave)
