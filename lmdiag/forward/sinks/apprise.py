"""Any of the services that Apprise knows, for those who install it: mail, chats, push notifications."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmdiag.forward import texts
from lmdiag.forward.credentials import CredentialError, credential
from lmdiag.forward.message import DELIVERED, RETRY, Outcome

if TYPE_CHECKING:
    from lmdiag.config import SinkConfig
    from lmdiag.forward.message import Message

_LONGEST = 20_000
"""Characters of a text, where a service sets no limit of its own."""
_TYPES = {"critical": "failure", "error": "failure", "warning": "warning", "info": "info"}


class AppriseSink:
    """Sends to the URLs of `url-file`, one a line; they hold the services' passwords.

    If one of several fails, all of them get the message again: whoever minds makes a sink for each.
    """

    batch = 1

    def __init__(self, config: SinkConfig) -> None:
        self._config = config
        self._call: threading.Thread | None = None

    def send(self, messages: Sequence[Message], now: float) -> Outcome:  # noqa: ARG002 (the time is in the messages)
        """Notify all services of the message, within `timeout`."""
        (message,) = messages
        try:
            services = self._services()
        except ImportError:
            return Outcome(RETRY, "apprise is not installed: pip install 'lmdiag[apprise]'")
        except CredentialError as error:
            return Outcome(RETRY, str(error))
        return self._within_timeout(message, services)

    def preview(self, messages: Sequence[Message], now: float) -> str:  # noqa: ARG002
        """Return what the services of the URLs would be sent; the URLs are secrets as a whole."""
        (message,) = messages
        count = len(_lines(self._config))
        head = f"notify the URLs of {self._config.url_file} ({count})\n{texts.headline(message)}"
        return f"{head}\n\n{texts.plain(message, _LONGEST)}\n"

    def _services(self) -> list[Any]:
        """Make the services of the URLs. Raises CredentialError, and ImportError without Apprise."""
        logging.getLogger("apprise").disabled = True  # it quotes URLs and what the services answer
        import apprise

        # In the thread that calls it, since its own ones would hold up the end of the process; redirects are refused.
        asset = apprise.AppriseAsset(
            app_id="lmdiag", async_mode=False, service_timeout=0, http_redirects=False, storage_mode="memory"
        )
        services = []
        for number, url in _lines(self._config):
            service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
            if service is None:
                raise CredentialError(
                    f"url-file: line {number} of {self._config.url_file} is no URL that Apprise knows; try: apprise -vv"
                )
            service.socket_connect_timeout = service.socket_read_timeout = self._config.timeout
            services.append(apprise.Apprise(service, asset=asset))
        return services

    def _within_timeout(self, message: Message, services: list[Any]) -> Outcome:
        """Notify in a thread: the sockets' timeouts do not bound a server that sends a byte now and then."""
        if self._call is not None and self._call.is_alive():
            return Outcome(RETRY, "the call before this one has not ended yet")
        failed: list[str] = []
        done = threading.Event()

        def call() -> None:
            failed.extend(service[0].service_name for service in services if not _notify(service, message))
            done.set()

        self._call = threading.Thread(target=call, name=f"apprise {self._config.name}", daemon=True)
        self._call.start()
        if not done.wait(self._config.timeout):
            return Outcome(RETRY, f"no answer within {self._config.timeout:g} s")
        if failed:
            return Outcome(RETRY, f"not taken by {', '.join(dict.fromkeys(map(str, failed)))}")
        return Outcome(DELIVERED)


def make(config: SinkConfig) -> AppriseSink:
    """Make the sink. Apprise is imported when something is sent."""
    return AppriseSink(config)


def _lines(config: SinkConfig) -> list[tuple[int, str]]:
    """Return the URLs with the numbers of their lines; # begins a comment. Raises CredentialError."""
    content = credential(config.url_file, "url-file")
    lines = ((number, line.strip()) for number, line in enumerate(content.splitlines(), 1))
    return [(number, line) for number, line in lines if line and not line.startswith("#")]


def _notify(service: Any, message: Message) -> bool:
    """Send plain text: Apprise escapes it for services that take Markdown or HTML."""
    only = service[0]
    title = texts.headline(message, only.title_maxlen or 200)
    # A service without titles gets it as the first line of the text.
    room = only.body_maxlen - (0 if only.title_maxlen else len(title) + 2)
    resolved = message.incident.state == "resolved"
    kind = "success" if resolved else _TYPES[message.incident.severity]
    body = texts.plain(message, min(room, _LONGEST))
    return bool(service.notify(body=body, title=title, notify_type=kind, body_format="text"))
