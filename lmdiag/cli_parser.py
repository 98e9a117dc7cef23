"""The parser of the command line: what each command takes, and the words of its help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lmdiag import __version__
from lmdiag.cli_catalog import add_catalog
from lmdiag.cli_forward import add_forward, add_forwarding
from lmdiag.model import SEVERITIES
from lmdiag.quick_options import COLORS, FORMATS

_EPILOG = """\
exit codes:
  0  nothing found that is as bad as --fail-on      1  something found
  2  wrong usage, an input that cannot be read, or an incident that a receiver of --forward refused
  130  interrupted (what was found is printed)
"""
_SPAN = """\
Only what lies in it is read, which is found without reading the rest of a plain file. WHEN: "2026-12-01 02:00",
2026-12-01T02:00:00Z, "12-01 02:00:00" as vLLM writes it, 02:00 (today, or yesterday if that is still to come), or
10m, 2h, 1d (ago). --last counts back from the newest line of each log. A time without a zone, there or in a log, is
this machine's local time; one without a year is the newest that the log can mean. Both ends are included."""


def parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser of the whole command line, or of as much of it as the arguments need."""
    top = argparse.ArgumentParser(
        prog="lmdiag",
        description="Finds the cause of a vLLM server's failure in its log, and answers with a fix card.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"lmdiag {__version__}")
    # Without `prog`, argparse would format a usage to find it, which costs a start more than all other arguments.
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=top.prog)
    _add_scan(commands)
    if arguments and arguments[0] == "scan":  # it starts without the parsers of the others
        return top
    from lmdiag.cli_receive import add_receive
    from lmdiag.cli_watch import add_watch

    _add_explain(commands)
    _add_cards(commands)
    add_watch(commands, arguments)
    add_forward(commands, arguments)
    add_receive(commands)
    add_catalog(commands)
    completion = commands.add_parser("completion", help="print the completion script of a shell")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    return top


def _add_scan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    scan = commands.add_parser(
        "scan",
        help="read logs and report the cause of each failure",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scan.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a log, a directory, a quoted glob, or - for standard input; .gz .bz2 .xz .zst are read as they are",
    )
    scan.add_argument(
        "--rotated",
        action="store_true",
        help="read the rotated siblings of each log too (server.log.1, server.log.2.gz, ...), oldest first",
    )
    when = scan.add_argument_group("a span of time", _SPAN)
    when.add_argument("--since", default="", metavar="WHEN", help="read each log from this moment on")
    when.add_argument("--until", default="", metavar="WHEN", help="read each log up to this moment")
    when.add_argument("--last", default="", metavar="DURATION", help="read the end of each log: 10m, 2h, 1d")
    scan.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="warning",
        metavar="SEVERITY",
        help=f"least severity for exit code 1: {', '.join(SEVERITIES)} (default: %(default)s)",
    )
    scan.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_forwarding(scan)
    scan.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal for more than 1 GB")
    scan.add_argument(
        "-j",
        "--jobs",
        type=_jobs,
        default=0,
        metavar="N",
        help="how many processes may read several files at once (default: one for each core)",
    )
    scan.add_argument(
        "-v", "--verbose", action="store_true", help="whole messages, every symptom, every argument of the server"
    )
    _add_output(scan)


def _add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    explain = commands.add_parser("explain", help="paste an error, get its card")
    explain.add_argument(
        "message",
        metavar="MESSAGE",
        nargs="+",
        help="an exception's line, its message, or a whole traceback; - reads it from standard input",
    )
    _add_output(explain)


def _add_cards(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    cards = commands.add_parser("cards", help="list, show, check and write fix cards")
    actions = cards.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_output(actions.add_parser("list", help="list the cards"))
    show = actions.add_parser("show", help="show a card whole; --format jsonl gives its data")
    show.add_argument("id", metavar="ID")
    _add_output(show)
    check = actions.add_parser("check", help="check the cards of a directory")
    check.add_argument("directory", metavar="DIR")
    test = actions.add_parser("test", help="run the samples of a directory's cards, and show what they find in logs")
    test.add_argument("directory", metavar="DIR")
    test.add_argument("logs", metavar="LOG", nargs="*", help="logs to try the cards on")
    new = actions.add_parser("new", help="print the skeleton of a card for an error message")
    new.add_argument("message", metavar="MESSAGE", help="the exact message; - reads it from standard input")


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        metavar="FORMAT",
        help="text, markdown (for a ticket) or jsonl (default: %(default)s)",
    )
    command.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory of your own cards; they win over the shipped ones",
    )
    command.add_argument(
        "--disable",
        action="append",
        default=[],
        metavar="ID",
        help="a card that is not to be used; also a line of a file `disabled` in a --rules directory",
    )
    command.add_argument(
        "--color",
        choices=COLORS,
        default="auto",
        metavar="WHEN",
        help="auto, always or never; NO_COLOR is honoured (default: %(default)s)",
    )
    command.add_argument(
        "--width", type=_columns, metavar="COLUMNS", help="width of the text (default: the terminal's)"
    )


def _jobs(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 1 to 1024")
    return int(text)


def _columns(text: str) -> int:
    if not text.isdigit() or not 20 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of columns from 20 to 1000")
    return int(text)
