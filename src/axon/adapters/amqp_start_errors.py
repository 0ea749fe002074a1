"""Explains why RabbitMQ could not be opened: wrong user, wrong password, missing vhost. Opens nothing itself."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from aiormq.exceptions import ProbableAuthenticationError

from axon.adapters import start_errors
from axon.adapters.service_address import ServiceAddress
from axon.adapters.start_errors import Service

_QUEUE = Service(noun="queue", port="5672", protocol="AMQP")


def service_of(url: str) -> Service:
    """The queue, with the default port of the URL's scheme."""
    return replace(_QUEUE, port="5671") if url.startswith("amqps:") else _QUEUE


def explained(address: ServiceAddress) -> AbstractContextManager[None]:
    """Wraps ``open``: a failure names the address and the cause, never the password."""
    return start_errors.explained(address, service_of(address.url), recognise)


def recognise(url: str, causes: Sequence[BaseException]) -> str:
    """The predicate for a mistake that people make; empty for any other failure."""
    text = "\n".join(str(cause) for cause in causes)
    user = unquote(urlsplit(url).username or "guest")
    if any(isinstance(cause, ProbableAuthenticationError) for cause in causes):
        return f"refuses the user {user!r}: wrong user or password."
    if "Connection.OpenOk" in text and "Connection.Close" in text:  # the driver drops the broker's reason
        vhost = unquote(urlsplit(url).path[1:]) or "/"
        return f"has no vhost {vhost!r}, or none that the user {user!r} may use."
    return ""
