"""The arguments of `lmdiag receive`, and the call for them."""

from __future__ import annotations

import argparse
import sys

from lmdiag.cli_forward import add_forwarding, forwarding

_EPILOG = """\
examples:
  lmdiag receive /var/log/vllm --token-file /etc/lmdiag/receive-token
  lmdiag receive --logs '/var/log/pods/{namespace}_{pod}_*/{container}/*.log' --token-file TOKEN

Alertmanager's side (webhook_configs):
  - url: http://127.0.0.1:9478/
    http_config: {authorization: {credentials_file: /etc/alertmanager/receive-token}}

A person's: curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -H 'Accept: text/plain'
  -d '{"version": "4", "alerts": [{"status": "firing", "labels": {}}]}' http://127.0.0.1:9478/
"""


def add_receive(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    receive = commands.add_parser(
        "receive",
        help="answer Alertmanager's webhook with the cause that the server's log shows",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    receive.add_argument("paths", nargs="*", metavar="PATH", help="a log, a directory or a quoted glob")
    receive.add_argument(
        "--logs",
        default="",
        metavar="TEMPLATE",
        help="instead of PATH: a glob with {label} in it, which each alert's labels fill",
    )
    receive.add_argument(
        "--listen", default="127.0.0.1:9478", metavar="HOST:PORT", help="where to listen (default: %(default)s)"
    )
    receive.add_argument(
        "--token-file", default="", metavar="FILE", help="a file with the token that clients send as Bearer"
    )
    receive.add_argument(
        "--no-token", action="store_true", help="take alerts of every user of this machine; on loopback only"
    )
    receive.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory of your own cards; they win over the shipped ones",
    )
    receive.add_argument(
        "--disable", action="append", default=[], metavar="ID", help="a card that is not to be used; may be repeated"
    )
    add_forwarding(receive)


def run_receive(options: argparse.Namespace) -> int:
    """Run the command; return the exit code. Raises UsageError, ConfigError and CredentialError."""
    from lmdiag.receive.config import ReceiveConfig
    from lmdiag.receive.main import receive

    config = ReceiveConfig(
        paths=tuple(options.paths),
        logs=options.logs,
        listen=options.listen,
        token_file=options.token_file,
        no_token=options.no_token,
        rules=tuple(options.rules),
        disabled=tuple(options.disable),
    )
    return receive(config, sys.stdout, sys.stderr, forwarding(options))
