"""The arguments of `lmdiag catalog`, and the call for each of its actions."""

from __future__ import annotations

import argparse
import os
import sys

_WORK = os.path.join("build", "catalog")
_BUILD_EPILOG = """\
examples:
  lmdiag catalog build vllm lmcache --into rules/catalog     all releases that are not in it yet
  lmdiag catalog build vllm==0.26.0 --into DIR               one release, through pip's index
  lmdiag catalog build --from /opt/venv/lib/python3.12/site-packages --package vllm_ascend \\
      --into /etc/lmdiag/rules/catalog                       a node's own packages; scan --rules /etc/lmdiag/rules
"""


def add_catalog(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `catalog` and its actions to the command line."""
    catalog = commands.add_parser("catalog", help="look up where vLLM and LMCache raise an error, in every release")
    actions = catalog.add_subparsers(dest="action", metavar="ACTION", required=True)
    find = actions.add_parser("find", help="find the raise site of an error message")
    find.add_argument(
        "message",
        metavar="MESSAGE",
        nargs="+",
        help="the message, with its type in front or without; - reads it from standard input",
    )
    find.add_argument("--vllm", metavar="VERSION", help="the version that ran: shows its file and line")
    find.add_argument("--lmcache", metavar="VERSION", help="the same for LMCache")
    _add_output(find)
    show = actions.add_parser("show", help="show a message whole: every site, its lines over the releases, rewordings")
    show.add_argument("id", metavar="ID", help="its id, or the beginning of it")
    _add_output(show)
    _add_output(actions.add_parser("versions", help="list the releases that the catalogue holds"))
    diff = actions.add_parser(
        "diff", help="list the errors that are new, gone, reworded, retyped or moved in a release"
    )
    diff.add_argument("old", metavar="OLD")
    diff.add_argument("new", metavar="NEW")
    diff.add_argument("--project", default="vllm", help="default: %(default)s")
    diff.add_argument("--path", default="", metavar="PREFIX", help="only of files below this path, like vllm/config/")
    diff.add_argument("--assertions", action="store_true", help="also what is only asserted: checks for developers")
    _add_output(diff)
    _add_build(actions)


def _add_build(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    build = actions.add_parser(
        "build",
        help="build a catalogue from releases or installed packages, or add to one",
        epilog=_BUILD_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    build.add_argument(
        "names",
        nargs="*",
        metavar="RELEASE",
        help="an archive (sdist or wheel), PROJECT==VERSION, or PROJECT for all its releases",
    )
    build.add_argument(
        "--from", dest="directory", metavar="DIR", help="read installed packages (site-packages) or a checkout"
    )
    build.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="a package in DIR (default: vllm and lmcache)"
    )
    build.add_argument(
        "--into", required=True, metavar="DIR", help="the catalogue's directory; the releases in it stay"
    )
    build.add_argument(
        "--work",
        default=_WORK,
        metavar="DIR",
        help="keeps one file a release, so that none is read twice (default: %(default)s)",
    )


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format",
        choices=("text", "jsonl"),
        default="text",
        metavar="FORMAT",
        help="text or jsonl (default: %(default)s)",
    )
    command.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory with a catalogue of your own in DIR/catalog",
    )


def run_catalog(options: argparse.Namespace) -> int:
    """Run the action that was chosen; return the exit code."""
    from lmdiag import catalog_commands as commands

    if options.action == "build":
        return commands.build(options.names, options.directory, options.package, options.into, options.work, sys.stderr)
    given = options.rules, options.format, sys.stdout, sys.stderr
    if options.action == "find":
        message = sys.stdin.read() if options.message == ["-"] else " ".join(options.message)
        return commands.find(message, {"vllm": options.vllm, "lmcache": options.lmcache}, *given)
    if options.action == "show":
        return commands.show(options.id, *given)
    if options.action == "versions":
        return commands.versions(*given)
    from lmdiag.catalog_diff_command import diff

    return diff(options.old, options.new, options.project, options.path, *given, assertions=options.assertions)
