"""The command line: arguments into a Config, one call, an exit code. Errors are reported here, once."""

from __future__ import annotations

import gc
import io
import os
import sys

TYPE_CHECKING = False  # importing `typing` comes behind the set-up of `main`
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import SimpleNamespace

    from lmdiag.config import ScanConfig
    from lmdiag.match.library import Library

_FIRST_COLLECTION = 50_000
"""Containers that a scan makes before Python looks for unused ones the first time: a small log leaves few, and looking
through all modules for them again and again costs a start a fifth. Of a large log no more than these are left at a time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if arguments is None and given[:1] == ["scan"]:
        gc.set_threshold(_FIRST_COLLECTION)
    return _main(given, last=arguments is None)


def _main(given: Sequence[str], *, last: bool) -> int:
    """`last`: nothing comes behind it in this process."""
    from lmdiag.errors import LmdiagError, StateError
    from lmdiag.quick_options import quick_options

    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        from lmdiag.cli_parser import parser

        argcomplete.autocomplete(parser())
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a log's text may not fit the terminal's encoding
    try:
        quick = quick_options(given)
        code = _scan(quick) if quick is not None else _run(_parsed(given))
        sys.stdout.flush()
        if last and quick is not None:
            os._exit(code)  # to take all apart piece by piece would take a third of an interpreter's start
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


def _parsed(given: Sequence[str]) -> argparse.Namespace:
    from lmdiag.cli_parser import parser

    return parser(given).parse_args(given)


def _scan(options: argparse.Namespace | SimpleNamespace) -> int:
    from lmdiag.scan import scan

    forward = None
    if options.forward:
        from lmdiag.cli_forward import forwarding

        forward = forwarding(options)
    return scan(_scan_config(options), sys.stdout, sys.stderr, forward)


def _run(options: argparse.Namespace) -> int:
    if options.command == "scan":
        return _scan(options)
    if options.command == "completion":
        return _completion(options.shell)
    if options.command == "catalog":
        from lmdiag.cli_catalog import run_catalog

        return run_catalog(options)
    if options.command in ("watch", "status", "config", "service"):
        from lmdiag.cli_watch import run_watch

        return run_watch(options)
    if options.command == "receive":
        from lmdiag.cli_receive import run_receive

        return run_receive(options)
    if options.command in ("forward", "outbox"):
        from lmdiag.cli_forward import run_forward

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


def _scan_config(options: argparse.Namespace | SimpleNamespace) -> ScanConfig:
    from lmdiag.config import ScanConfig

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
        since=options.since,
        until=options.until,
        last=options.last,
    )


def _color(options: argparse.Namespace | SimpleNamespace) -> bool | None:
    return {"auto": None, "always": True, "never": False}[getattr(options, "color", "auto")]


def _completion(shell: str) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["lmdiag"], shell=shell))
    return 0
