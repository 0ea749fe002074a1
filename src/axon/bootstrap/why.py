"""Why a service could not be opened, for who starts a process: what, where and why. Opens nothing itself.

For a terminal alone. What a client reads later stays as the adapters say it, without a host or a driver's words.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from axon.errors import DependencyDown
from axon.telemetry.redact import clean_text

MAX_CHARS = 200
"""Of a driver's own words."""
_SILENT = ("does not answer", "did not answer")
_HIDDEN = "***"


class _Kind(NamedTuple):
    noun: str
    port: str
    protocol: str


_QUEUE = _Kind("queue", "5672", "AMQP")
_LIVE = _Kind("live service", "6379", "Redis's protocol")
_STORE = _Kind("store", "5432", "PostgreSQL's protocol")


def why(url: str, failure: DependencyDown) -> str:
    """One sentence; neither the URL nor its password is in it."""
    kind = _kind(url)
    subject = f"The {kind.noun} "
    try:
        rest = urlsplit(url)
    except ValueError:  # which quotes the URL
        return failure.message
    if not failure.message.startswith(subject):
        return failure.message
    if "@" in f"{rest.path}{rest.query}{rest.fragment}" and rest.scheme != "sqlite":
        # What looks like the host may be the beginning of a password.
        return f"{failure.message} In its URL's user and password, write / as %2F, ? as %3F, # as %23 and @ as %40."
    predicate = failure.message.removeprefix(subject)
    if predicate.startswith(_SILENT):
        links = list(_chain(failure.__cause__ or failure.__context__))
        predicate = _foreseen(url, kind, links) or _unforeseen(url, failure, links)
    return f"{subject}at {place(url)} {predicate}"


def place(url: str) -> str:
    """Host and port, or a file; never the user or the password."""
    if url.startswith("sqlite:"):
        return url.removeprefix("sqlite:///")
    kind, query = _kind(url), dict(parse_qsl(urlsplit(url).query))
    hosts = urlsplit(url).netloc.rpartition("@")[2] or query.get("host", "")
    if not hosts or hosts.startswith("/"):
        return hosts or ("its local socket" if kind is _STORE else f"localhost:{kind.port}")
    port = query.get("port", kind.port) if kind is _STORE else kind.port
    return ",".join(host if re.search(r":\d+$", host) else f"{host.rstrip(':')}:{port}" for host in hosts.split(","))


def _kind(url: str) -> _Kind:
    scheme = url.partition(":")[0]
    kind = _QUEUE if scheme.startswith("amqp") else _LIVE if scheme.startswith("redis") else _STORE
    return kind._replace(port="5671") if scheme == "amqps" else kind


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The drivers' errors, from the outermost in; what a database toolkit wraps in place of its wrapping."""
    from sqlalchemy.exc import DBAPIError

    while error is not None:
        if isinstance(error, DBAPIError) and error.orig is not None:
            error = error.orig
            continue
        yield error
        error = error.__cause__ or error.__context__


def _foreseen(url: str, kind: _Kind, links: list[BaseException]) -> str:
    """What people get wrong, in plain words; empty for anything else."""
    text = "\n".join(str(link) for link in links)
    if kind is _LIVE:
        known = _of_redis(url, links, text)
    elif kind is _STORE:
        known = _of_database(text)
    else:
        known = _of_rabbitmq(url, links, text)
    return known or _of_network(kind, links)


def _of_rabbitmq(url: str, links: list[BaseException], text: str) -> str:
    from aiormq.exceptions import ProbableAuthenticationError

    user = unquote(urlsplit(url).username or "guest")
    if any(isinstance(link, ProbableAuthenticationError) for link in links):
        return f"refuses the user {user!r}: wrong user or password."
    if "Connection.OpenOk" in text and "Connection.Close" in text:  # the driver drops the reason
        vhost = unquote(urlsplit(url).path[1:]) or "/"
        return f"has no vhost {vhost!r}, or none that the user {user!r} may use."
    return ""


def _of_redis(url: str, links: list[BaseException], text: str) -> str:
    from redis.exceptions import AuthenticationError, InvalidResponse

    if "DB index is out of range" in text:
        database = dict(parse_qsl(urlsplit(url).query)).get("db") or urlsplit(url).path.strip("/")
        return f"has no database {database}."
    if "without any password configured" in text:
        return "has no password, and its URL names one."
    if any(isinstance(link, AuthenticationError) for link in links):
        user = unquote(urlsplit(url).username or "default")
        return f"refuses the user {user!r}: wrong user or password." if _passwords(url) else "wants a password."
    if "cluster support disabled" in text:
        return "is not part of a cluster: use redis:// or rediss://."
    if any(isinstance(link, InvalidResponse) for link in links):
        return "does not speak Redis's protocol."
    return ""


def _of_database(text: str) -> str:
    if missing := re.search(r'(role|database) "([^"\n]*)" does not exist', text):
        return f"has no {missing[1]} {missing[2]!r}."
    if refused := re.search(r'password authentication failed for user "([^"\n]*)"', text):
        return f"refuses the user {refused[1]!r}: wrong user or password."
    if "no password supplied" in text:
        return "wants a password."
    if "failed to resolve host" in text:
        return "does not answer: there is no such host."
    if "connection timeout expired" in text:
        return _too_late(_STORE)
    if "Connection refused" in text:
        return "does not answer: connection refused."
    if "readonly database" in text:
        return "cannot be used: read-only file."
    return ""


def _of_network(kind: _Kind, links: list[BaseException]) -> str:
    for link in links:
        if isinstance(link, ssl.SSLError):
            reason = str(link.reason or "no reason given").replace("_", " ").lower()
            return f"does not answer: TLS failed ({reason})."
        if isinstance(link, socket.gaierror):
            return "does not answer: there is no such host."
    for link in links:
        if type(link).__name__ == "TimeoutError":  # Python's, or the driver's own
            return _too_late(kind)
        if isinstance(link, OSError) and link.errno and link.errno > 0:
            verb = "does not answer" if isinstance(link, ConnectionError) else "cannot be used"
            return f"{verb}: {os.strerror(link.errno).lower()}."
        if isinstance(link, EOFError) or isinstance(links[0], asyncio.CancelledError):
            return f"does not answer: it closed the connection. Does it speak {kind.protocol}?"
    return ""


def _too_late(kind: _Kind) -> str:
    return f"does not answer in time: nothing there speaks {kind.protocol}, or it is too busy."


def _unforeseen(url: str, failure: DependencyDown, links: list[BaseException]) -> str:
    """The driver's own words. Without a cause the adapter holds them back: they may quote what was sent."""
    if not links:
        return "does not answer."
    name = type(links[0]).__name__
    if failure.__cause__ is None:
        return f"does not answer ({name})."
    line = (str(links[0]).splitlines() or [""])[0].rpartition(" failed: ")[2]
    for password in _passwords(url):
        line = line.replace(password, _HIDDEN)
    words = " ".join(clean_text(f"{name}: {line}" if line else name).split())
    return f"does not answer: {words[:MAX_CHARS].rstrip('.')}."


def _passwords(url: str) -> list[str]:
    """As written and as meant, the longest first."""
    query = [value for name, value in parse_qsl(urlsplit(url).query) if "password" in name.lower()]
    written = [password for password in (urlsplit(url).password, *query) if password]
    return sorted({form for text in written for form in (text, unquote(text))}, key=len, reverse=True)
