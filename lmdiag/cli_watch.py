"""The arguments of `lmdiag watch`, `status`, `config` and `service`, and the call for each of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmdiag.config import WatchConfig
    from lmdiag.settings.table import Setting

_DROP_INS = ("docker", "kubernetes", "ray")
_WATCH_EPILOG = """\
examples:
  lmdiag watch '/var/log/vllm/*.log'               follow files, report each incident once
  lmdiag watch --journal vllm.service              follow a unit's journal
  vllm serve MODEL 2>&1 | lmdiag watch -           follow a server from its start
  lmdiag watch --once --state DIR server.log       what is new since the last time, for cron

Each setting also stands in config.toml under its flag's name (settle = "1s"), and in the environment
(LMDIAG_SETTLE=1s). Flags win over the environment, the environment over the file: lmdiag config show.
"""


def add_watch(commands: argparse._SubParsersAction[argparse.ArgumentParser], named: Sequence[str] | None) -> None:
    """Add the commands to the command line.

    Only those that are `named` (None: all) get their arguments, so that other commands start without the table.
    """
    raw = argparse.RawDescriptionHelpFormatter
    watch = commands.add_parser(
        "watch", help="follow logs and report each incident once", epilog=_WATCH_EPILOG, formatter_class=raw
    )
    status = commands.add_parser("status", help="show the sources, rates and incidents of a running `lmdiag watch`")
    config = commands.add_parser("config", help="check and show the configuration of `lmdiag watch`")
    service = commands.add_parser("service", help="install `lmdiag watch` as a systemd service")
    if named is None or "watch" in named:
        _fill_watch(watch)
    if named is None or "status" in named:
        _fill_status(status)
    if named is None or "config" in named:
        _fill_config(config)
    if named is None or "service" in named:
        _fill_service(service)


def _fill_watch(watch: argparse.ArgumentParser) -> None:
    from lmdiag.settings.table import SETTINGS

    add_config(watch)
    for setting in SETTINGS:
        add_setting(watch, setting)


def _fill_status(status: argparse.ArgumentParser) -> None:
    from lmdiag.settings.table import BY_KEY

    add_config(status)
    for key in ("state", "color", "width"):
        add_setting(status, BY_KEY[key])
    add_style(status)


def _fill_config(config: argparse.ArgumentParser) -> None:
    from lmdiag.settings.table import IN_FILE

    actions = config.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="check the file, the environment and the flags; exit code 2 if wrong")
    show = actions.add_parser("show", help="show each setting, its value and where it comes from")
    for action in (check, show):
        add_config(action)
        for key, setting in IN_FILE.items():
            if key not in ("paths", "format"):
                add_setting(action, setting)
    add_style(show)


def _fill_service(service: argparse.ArgumentParser) -> None:
    actions = service.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser("install", help="write the unit and an example configuration, enable and start it")
    install.add_argument(
        "--with",
        dest="drop_ins",
        action="append",
        choices=_DROP_INS,
        default=[],
        metavar="NODE",
        help=f"what a node of this kind needs besides: {', '.join(_DROP_INS)}; may be repeated",
    )
    install.add_argument("--no-start", action="store_true", help="write the files, do not enable or start the service")
    install.add_argument("--dry-run", action="store_true", help="only say what would be done")
    uninstall = actions.add_parser("uninstall", help="stop the service and remove its files")
    uninstall.add_argument("--purge", action="store_true", help="remove the configuration and the state as well")
    status = actions.add_parser("status", help="say what is installed, and whether it runs")
    for action in (install, uninstall, status):
        action.add_argument(
            "--prefix", default="/", metavar="DIR", help="root of the system to change (default: %(default)s)"
        )


def add_config(command: argparse.ArgumentParser) -> None:
    """Add the flag that names the configuration."""
    command.add_argument(
        "--config",
        metavar="FILE",
        help="the configuration (default: config.toml in $CONFIGURATION_DIRECTORY, lmdiag.toml here, config.toml in"
        " ~/.config/lmdiag or /etc/lmdiag; the first that exists)",
    )


def add_style(command: argparse.ArgumentParser) -> None:
    """Add --format, for commands that print no incidents."""
    command.add_argument(
        "--format",
        dest="style",
        choices=("text", "jsonl"),
        default="text",
        metavar="FORMAT",
        help="text or jsonl (default: %(default)s)",
    )


def add_setting(command: argparse.ArgumentParser, setting: Setting) -> None:
    """Add a setting's flag. What was not given leaves no trace: file and environment are then asked."""
    from lmdiag.settings.values import Choice, ListOf, Switch

    kind, help_ = setting.kind, _help(setting).replace("%", "%%")
    if setting.key == "paths":
        command.add_argument(setting.key, nargs="*", default=argparse.SUPPRESS, metavar=setting.metavar, help=help_)
    elif isinstance(kind, Switch):
        action = "store_true" if setting.default is False else argparse.BooleanOptionalAction
        command.add_argument(setting.flag, dest=setting.key, action=action, default=argparse.SUPPRESS, help=help_)
    else:
        command.add_argument(
            setting.flag,
            dest=setting.key,
            action="append" if isinstance(kind, ListOf) else "store",
            choices=tuple(kind.options) if isinstance(kind, Choice) else None,
            default=argparse.SUPPRESS,
            metavar=setting.metavar,
            help=help_,
        )


def _help(setting: Setting) -> str:
    from lmdiag.settings.values import ListOf, Switch

    if isinstance(setting.kind, ListOf) and not setting.default:
        return setting.help + ("" if setting.key == "paths" else "; may be repeated")
    default = "" if isinstance(setting.kind, Switch) else setting.kind.text(setting.default)
    return f"{setting.help} (default: {default})" if default else setting.help


def run_watch(options: argparse.Namespace) -> int:
    """Run the command that was chosen; return the exit code. Raises ConfigError."""
    if options.command == "service":
        return _service(options)
    if options.command == "status":
        return _status(options)
    from lmdiag import config_commands

    given = flags(options)
    if options.command == "config":
        if options.action == "check":
            return config_commands.check(given, os.environ, options.config, sys.stdout, sys.stderr)
        return config_commands.show(given, os.environ, options.config, options.style, sys.stdout)

    def reload() -> WatchConfig:
        return config_commands.watch_config(given, os.environ, options.config)

    config = reload()
    from lmdiag.watch.main import watch

    return watch(config, reload, sys.stdout, sys.stderr)


def flags(options: argparse.Namespace) -> dict[str, object]:
    """The settings that were given on the command line."""
    from lmdiag.settings.table import BY_KEY

    return {key: value for key, value in vars(options).items() if key in BY_KEY}


def _status(options: argparse.Namespace) -> int:
    from lmdiag.settings.file import load
    from lmdiag.watch.status import status

    # Someone who names the state directory sees the status even while the configuration is broken.
    file = "/dev/null" if "state" in options else options.config
    config = load(flags(options), {} if "state" in options else os.environ, file).config
    return status(config.state, options.style, config.color, config.width, sys.stdout)


def _service(options: argparse.Namespace) -> int:
    from lmdiag import service_command

    if options.action == "install":
        now = not options.no_start
        return service_command.install(options.prefix, options.drop_ins, now, options.dry_run, sys.stdout)
    if options.action == "uninstall":
        return service_command.uninstall(options.prefix, options.purge, sys.stdout)
    return service_command.service_status(options.prefix, sys.stdout)
