"""The command line: arguments into a Config, one call, an exit code. Errors are reported here, once."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmdiag import __version__
from lmdiag.cli_catalog import add_catalog, run_catalog
from lmdiag.cli_forward import add_forward, add_forwarding, forwarding, run_forward
from lmdiag.config import ScanConfig
from lmdiag.errors import LmdiagError, StateError
from lmdiag.model import SEVERITIES

if TYPE_CHECKING:
    from lmdiag.match.library import Library

_FORMATS = ("text", "markdown", "jsonl")
_EPILOG = """\
exit codes:
  0  nothing found that is as bad as --fail-on      1  something found
  2  wrong usage, an input that cannot be read, or an incident that a receiver of --forward refused
  130  interrupted (what was found is printed)
"""


def parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Build the parser of the whole command line, or of as much of it as the arguments need."""
    top = argparse.ArgumentParser(
        prog="lmdiag",
        description="Finds the cause of a vLLM server's failure in its log, and answers with a fix card.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"lmdiag {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
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
    scan.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="warning",
        metavar="SEVERITY",
        help=f"least severity for exit code 1: {', '.join(SEVERITIES)} (default: %(default)s)",
    )
    scan.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_forwarding(scan)
    scan.add_argument("--no-progress", action="store_true", help="no progress bar on a terminal for more than 100 MB")
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
        choices=_FORMATS,
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
        choices=("auto", "always", "never"),
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser())
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a log's text may not fit the terminal's encoding
    try:
        given = sys.argv[1:] if arguments is None else arguments
        options = parser(given).parse_args(given)
        code = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed_pipe()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"lmdiag: the report cannot be written: {error.strerror or error}", file=sys.stderr)
        return _closed_pipe() or 2
    except LmdiagError as error:
        from lmdiag.report.control import visible

        print(f"lmdiag: {visible(str(error))}", file=sys.stderr)
        # EX_TEMPFAIL of sysexits.h: a full disk passes, a wrong configuration does not, so only 2 ends the service
        return 75 if isinstance(error, StateError) else 2
    return code


def _open_closed_streams() -> None:
    """A program started with `>&-` or `<&-` has no such stream at all; it gets an empty one."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - lives as long as the process
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _closed_pipe() -> int:
    """`lmdiag scan x | head` ends quietly: nobody is left to read the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _run(options: argparse.Namespace) -> int:
    if options.command == "scan":
        from lmdiag.scan import scan

        return scan(_scan_config(options), sys.stdout, sys.stderr, forwarding(options))
    if options.command == "completion":
        return _completion(options.shell)
    if options.command == "catalog":
        return run_catalog(options)
    if options.command in ("watch", "status", "config", "service"):
        from lmdiag.cli_watch import run_watch

        return run_watch(options)
    if options.command == "receive":
        from lmdiag.cli_receive import run_receive

        return run_receive(options)
    if options.command in ("forward", "outbox"):
        return run_forward(options)
    if options.command == "cards" and options.action in ("check", "test"):
        from lmdiag import card_checks

        if options.action == "check":
            return card_checks.check(options.directory, sys.stdout)
        return card_checks.test(options.directory, options.logs, sys.stdout)
    from lmdiag.match.library import open_library
    from lmdiag.scan import warn

    library = open_library(getattr(options, "rules", ()), getattr(options, "disable", ()))
    code = _ask_library(options, library)
    warn(library, 0, sys.stderr)
    return code


def _ask_library(options: argparse.Namespace, library: Library) -> int:
    from lmdiag import library_commands

    color = _color(options)
    if options.command == "explain":
        message = sys.stdin.read() if options.message == ["-"] else " ".join(options.message)
        return library_commands.explain(message, library, options.format, color, options.width, sys.stdout, sys.stderr)
    if options.action == "list":
        return library_commands.list_cards(library, options.format, sys.stdout)
    if options.action == "show":
        return library_commands.show(options.id, library, options.format, color, options.width, sys.stdout)
    message = sys.stdin.read() if options.message == "-" else options.message
    return library_commands.new(message, library, sys.stdout)


def _scan_config(options: argparse.Namespace) -> ScanConfig:
    return ScanConfig(
        paths=tuple(options.paths),
        format=options.format,
        rules=tuple(options.rules),
        disabled=tuple(options.disable),
        rotated=options.rotated,
        fail_on=options.fail_on,
        exit_zero=options.exit_zero,
        color=_color(options),
        width=options.width,
        progress=not options.no_progress,
        verbose=options.verbose,
        jobs=options.jobs,
    )


def _color(options: argparse.Namespace) -> bool | None:
    return {"auto": None, "always": True, "never": False}[getattr(options, "color", "auto")]


def _completion(shell: str) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["lmdiag"], shell=shell))
    return 0
