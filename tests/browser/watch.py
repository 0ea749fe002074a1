"""What a page must not do, noticed while a test uses it. Knows no page of ours.

A page fails its test when a script throws, when it writes an error to the console, when the content security policy
stops something, when it asks a host other than this machine, and when a dialog of the browser opens. That a request
failed (a server that was killed, a key that is not good) is the page's own business: the browser's note of it on the
console is left out. What a test provokes on purpose, it allows.
"""

import re
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, Route, WebError, WebSocket

_OURS = frozenset({"127.0.0.1", "localhost", "::1"})
_WITHOUT_HOST = frozenset({"data", "blob", "about"})
_FAILED_REQUEST = re.compile(r"^Failed to load resource: (the server responded|net::ERR_)")
_REPORT = """
addEventListener("securitypolicyviolation", event => console.error(
  `policy: ${event.effectiveDirective} stopped ${event.blockedURI} ${event.sample} (${event.sourceFile})`));
"""


class Watch:
    """Watches every page of a browser's contexts; ``problems`` is what they did."""

    def __init__(self) -> None:
        self._seen: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    @property
    def problems(self) -> list[str]:
        """What was seen and not allowed."""
        return [seen for seen in self._seen if not any(allowed.search(seen) for allowed in self._allowed)]

    def allow(self, pattern: str) -> None:
        """Lets the test provoke what matches, before or after it has happened."""
        self._allowed.append(re.compile(pattern))

    def follow(self, context: BrowserContext) -> None:
        """Watches the pages that the context has and will have."""
        context.add_init_script(_REPORT)
        context.route(_is_foreign, self._refuse)
        context.on("weberror", self._threw)
        context.on("console", self._wrote)
        context.on("dialog", self._opened)
        context.on("page", lambda page: page.on("websocket", self._connected))

    def _refuse(self, route: Route, request: Request) -> None:
        self._seen.append(f"request to another host: {request.method} {request.url}")
        route.abort()

    def _threw(self, error: WebError) -> None:
        self._seen.append(f"a script threw: {error.error}")

    def _wrote(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not _FAILED_REQUEST.search(message.text):
            self._seen.append(f"console: {message.text} ({_address(message)})")

    def _opened(self, dialog: Dialog) -> None:
        self._seen.append(f"a dialog opened: {dialog.type} {dialog.message!r}")
        dialog.dismiss()

    def _connected(self, socket: WebSocket) -> None:
        if _is_foreign(socket.url):
            self._seen.append(f"socket to another host: {socket.url}")


def _address(message: ConsoleMessage) -> str:
    return str(message.location.get("url", ""))


def _is_foreign(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in _WITHOUT_HOST and parts.hostname not in _OURS


def page_of(context: BrowserContext) -> Page:
    """A page whose waits are patient: the cores may be busy."""
    page = context.new_page()
    page.set_default_timeout(30_000)
    return page


def wait_on(page: Page, true: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
    """Waits for the thing itself while the browser's events come in."""
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        page.wait_for_timeout(20)
