"""Common parts of a failed start's message: the service's address, network failures, and the hiding of passwords.

Each adapter adds the failures of its own driver and raises the message from ``open``, so only whoever starts a process
reads it; messages for clients name neither hosts nor drivers. This module knows no driver.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from axon.adapters.service_address import ServiceAddress
from axon.adapters.tls_errors import recognise_certificate
from axon.errors import DependencyDown, ServiceRefuses
from axon.runtime.service_url import HIDDEN, shown
from axon.telemetry.redact import clean_text

MAX_CHARS = 200
"""Longest quotation of a driver's own message, in characters."""
_SILENT = ("does not answer", "did not answer")
_HIDDEN = "***"

Recognise = Callable[[str, Sequence[BaseException]], str]
"""Takes a URL and the driver's errors, outermost first; returns the predicate for a common mistake, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A kind of service as a message names it."""

    noun: str
    port: str
    """Default TCP port."""
    protocol: str
    takes_port_from_query: bool = False
    local: str = ""
    """Name of the address that a URL without a host means; localhost and the default port where this is empty."""


@contextmanager
def explained(place: ServiceAddress, service: Service, recognise: Recognise) -> Iterator[None]:
    """Raises ``DependencyDown`` with the service, its address and the cause, in place of one without them;
    ``ServiceRefuses`` for a mistake that waiting does not mend. A URL from a file may be corrected there."""
    try:
        yield
    except DependencyDown as failure:
        url = place.url
        kind = ServiceRefuses if place.file is None and refuses(url, failure, recognise) else DependencyDown
        raise kind(start_error(url, failure, service, recognise), code=failure.code) from failure


def refuses(url: str, failure: DependencyDown, recognise: Recognise) -> bool:
    """Whether the service answered, and refused what the URL says."""
    causes = list(_causes(failure.__cause__ or failure.__context__))
    found = recognise_certificate(causes) or recognise(url, causes)
    return bool(found) and not found.startswith(_SILENT)


def start_error(url: str, failure: DependencyDown, service: Service, recognise: Recognise) -> str:
    """One sentence; it contains neither the URL nor its password."""
    subject = f"The {service.noun} "
    try:
        rest = urlsplit(url)
    except ValueError:  # its message quotes the URL
        return failure.message
    if not failure.message.startswith(subject):
        return failure.message
    is_unclear = shown(url) == HIDDEN or "@" in f"{rest.query}{rest.fragment}"
    if is_unclear and rest.scheme != "sqlite":
        # What looks like the host may be the beginning of a password.
        return f"{failure.message} In its URL's user and password, write / as %2F, ? as %3F, # as %23 and @ as %40."
    predicate = failure.message.removeprefix(subject)
    if predicate.startswith(_SILENT):
        causes = list(_causes(failure.__cause__ or failure.__context__))
        found = recognise_certificate(causes) or recognise(url, causes)
        predicate = found or _network_failure(service, causes) or _quoted(url, failure, causes)
    return f"{subject}at {address(url, service)} {predicate}"


def address(url: str, service: Service) -> str:
    """Host and port, or a file; never the user or the password."""
    if url.startswith("sqlite:"):
        return url.removeprefix("sqlite:///")
    query = dict(parse_qsl(urlsplit(url).query))
    hosts = urlsplit(url).netloc.rpartition("@")[2] or query.get("host", "")
    if not hosts or hosts.startswith("/"):
        return hosts or service.local or f"localhost:{service.port}"
    port = query.get("port", service.port) if service.takes_port_from_query else service.port
    return ",".join(host if re.search(r":\d+$", host) else f"{host.rstrip(':')}:{port}" for host in hosts.split(","))


def passwords(url: str) -> list[str]:
    """Every password in the URL, percent-encoded and decoded, the longest first."""
    query = [value for name, value in parse_qsl(urlsplit(url).query) if "password" in name.lower()]
    written = [password for password in (urlsplit(url).password, *query) if password]
    return sorted({form for text in written for form in (text, unquote(text))}, key=len, reverse=True)


def timed_out(service: Service) -> str:
    """The predicate for an expired deadline."""
    return f"does not answer in time: nothing there speaks {service.protocol}, or it is too busy."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The chain of errors, outermost first. An error that carries another as ``orig`` (PEP 249 wrappers, as
    SQLAlchemy's) is replaced by it."""
    while error is not None:
        wrapped = getattr(error, "orig", None)
        if isinstance(wrapped, BaseException):
            error = wrapped
            continue
        yield error
        error = error.__cause__ or error.__context__


def _network_failure(service: Service, causes: Sequence[BaseException]) -> str:
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            reason = str(cause.reason or "no reason given").replace("_", " ").lower()
            return f"does not answer: TLS failed ({reason})."
        if isinstance(cause, socket.gaierror):
            return "does not answer: there is no such host."
    for cause in causes:
        if type(cause).__name__ == "TimeoutError":  # Python's, or the driver's own
            return timed_out(service)
        if isinstance(cause, OSError) and cause.errno and cause.errno > 0:
            verb = "does not answer" if isinstance(cause, ConnectionError) else "cannot be used"
            return f"{verb}: {os.strerror(cause.errno).lower()}."
        if isinstance(cause, EOFError) or isinstance(causes[0], asyncio.CancelledError):
            return f"does not answer: it closed the connection. Does it speak {service.protocol}?"
    return ""


def _quoted(url: str, failure: DependencyDown, causes: Sequence[BaseException]) -> str:
    """Quotes the driver, for a failure that nobody foresaw. A failure without ``__cause__`` gives the class alone: its
    adapter withholds the message, which may quote what was sent."""
    if not causes:
        return "does not answer."
    name = type(causes[0]).__name__
    if failure.__cause__ is None:
        return f"does not answer ({name})."
    line = (str(causes[0]).splitlines() or [""])[0].rpartition(" failed: ")[2]
    for password in passwords(url):
        line = line.replace(password, _HIDDEN)
    words = " ".join(clean_text(f"{name}: {line}" if line else name).split())
    return f"does not answer: {words[:MAX_CHARS].rstrip('.')}."
