"""The arguments of `lmdiag forward` and `lmdiag outbox`, and the call for each of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import SimpleNamespace

    from lmdiag.config import WatchConfig
    from lmdiag.scan import Forward


def add_forward(commands: argparse._SubParsersAction[argparse.ArgumentParser], named: Sequence[str] | None) -> None:
    """Add the commands to the command line.

    Only those that are `named` (None: all) get their arguments, so that other commands start without the table.
    """
    forward = commands.add_parser("forward", help="test the sinks that `lmdiag watch` forwards its reports to")
    outbox = commands.add_parser("outbox", help="show, retry and drop reports that are not delivered")
    if named is None or "forward" in named:
        _fill_forward(forward)
    if named is None or "outbox" in named:
        _fill_outbox(outbox)


def _fill_forward(forward: argparse.ArgumentParser) -> None:
    from lmdiag.cli_watch import add_config, add_style

    actions = forward.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = actions.add_parser(
        "test",
        help="send a test incident to each sink, and show what was sent and answered; exit code 1 if one did not take it",
    )
    test.add_argument("sinks", nargs="*", metavar="SINK", help="names of sinks (default: all that are configured)")
    test.add_argument("--dry-run", action="store_true", help="only show what would be sent")
    add_config(test)
    _add_look(test)
    add_style(test)


def _fill_outbox(outbox: argparse.ArgumentParser) -> None:
    from lmdiag.cli_watch import add_style

    actions = outbox.add_subparsers(dest="action", metavar="ACTION", required=True)
    list_ = actions.add_parser("list", help="list what waits to be delivered, and dead letters")
    list_.add_argument("--sink", default="", metavar="NAME", help="only what is for this sink")
    list_.add_argument("--all", action="store_true", help="also what was delivered, or is part of a summary")
    show = actions.add_parser("show", help="show deliveries and the whole report")
    show.add_argument("name", metavar="NAME", help="a delivery's number or key, or an incident's id")
    for action in (list_, show):
        _add_look(action)
        add_style(action)
    retry = actions.add_parser("retry", help="send dead letters again, and what waits at once")
    drop = actions.add_parser("drop", help="remove dead letters, and what waits, for good")
    for action in (retry, drop):
        action.add_argument("names", nargs="*", metavar="NAME", help="a delivery's number or key, or an incident's id")
        action.add_argument("--sink", default="", metavar="NAME", help="all for this sink, waiting or dead")
        action.add_argument("--dead", action="store_true", help="all dead letters")
    for action in (list_, show, retry, drop):
        _add_place(action)


def _add_place(command: argparse.ArgumentParser) -> None:
    from lmdiag.cli_watch import add_config, add_setting
    from lmdiag.settings.table import BY_KEY

    add_config(command)
    add_setting(command, BY_KEY["state"])


def _add_look(command: argparse.ArgumentParser) -> None:
    from lmdiag.cli_watch import add_setting
    from lmdiag.settings.table import BY_KEY

    for key in ("color", "width"):
        add_setting(command, BY_KEY[key])


def run_forward(options: argparse.Namespace) -> int:
    """Run the command that was chosen; return the exit code. Raises ConfigError, UsageError and StateError."""
    return _test(options) if options.command == "forward" else _outbox(options)


def _test(options: argparse.Namespace) -> int:
    from lmdiag.cli_watch import flags
    from lmdiag.forward_commands import send_tests
    from lmdiag.settings.file import load

    loaded = load(flags(options), os.environ, options.config)
    return send_tests(loaded.config, loaded.file, options.sinks, options.style, sys.stdout, dry_run=options.dry_run)


def _outbox(options: argparse.Namespace) -> int:
    from lmdiag import outbox_commands
    from lmdiag.cli_watch import flags
    from lmdiag.settings.file import load

    # Someone who names the state directory sees the outbox even while the configuration is broken.
    file = "/dev/null" if "state" in options else options.config
    config = load(flags(options), {} if "state" in options else os.environ, file).config
    if options.action == "list":
        return outbox_commands.list_deliveries(
            config.state, options.sink, options.style, config.color, config.width, sys.stdout, sys.stderr,
            done=options.all,
        )  # fmt: skip
    if options.action == "show":
        return _show(options, config)
    chosen = outbox_commands.Chosen(tuple(options.names), options.sink, options.dead)
    if options.action == "retry":
        return outbox_commands.retry(config.state, chosen, sys.stdout)
    return outbox_commands.drop(config.state, chosen, sys.stdout)


def _show(options: argparse.Namespace, config: WatchConfig) -> int:
    from lmdiag.match.library import open_library
    from lmdiag.outbox_commands import show

    library = open_library(config.rules, config.disabled)
    return show(config.state, options.name, options.style, library.card, config.color, config.width, sys.stdout)


def add_forwarding(command: argparse.ArgumentParser) -> None:
    """Add the flags of a command that can forward what it found."""
    command.add_argument(
        "--forward",
        action="store_true",
        help="send what was found to the sinks of the configuration too, each incident once, however often it is found",
    )
    command.add_argument(
        "--config", metavar="FILE", help="the configuration that --forward uses (default: as lmdiag watch)"
    )


def forwarding(options: argparse.Namespace | SimpleNamespace) -> Forward | None:
    """Return what `--forward`, if it was given, does with incidents. Raises ConfigError."""
    if not options.forward:
        return None
    from lmdiag.forward.once import check_sinks, forward_once
    from lmdiag.settings.file import load

    config = load({}, os.environ, options.config).config
    check_sinks(config)
    return lambda incidents, cards: forward_once(incidents, config, cards, sys.stderr)
