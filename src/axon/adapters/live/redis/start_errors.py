"""Explains why Redis could not be opened: wrong password, missing database, no cluster. Opens nothing itself."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.exceptions import AuthenticationError, InvalidResponse

from axon.adapters import start_errors
from axon.adapters.service_address import ServiceAddress
from axon.adapters.start_errors import Service, passwords

LIVE = Service(noun="live service", port="6379", protocol="Redis's protocol")


def explained(address: ServiceAddress) -> AbstractContextManager[None]:
    """Wraps ``open``: a failure names the address and the cause, never the password."""
    return start_errors.explained(address, LIVE, recognise)


def recognise(url: str, causes: Sequence[BaseException]) -> str:
    """The predicate for a mistake that people make; empty for any other failure."""
    text = "\n".join(str(cause) for cause in causes)
    if "DB index is out of range" in text:
        database = dict(parse_qsl(urlsplit(url).query)).get("db") or urlsplit(url).path.strip("/")
        return f"has no database {database}."
    if "without any password configured" in text:
        return "has no password, and its URL names one."
    if any(isinstance(cause, AuthenticationError) for cause in causes):
        user = unquote(urlsplit(url).username or "default")
        return f"refuses the user {user!r}: wrong user or password." if passwords(url) else "wants a password."
    if "cluster support disabled" in text:
        return "is not part of a cluster: use redis:// or rediss://."
    if any(isinstance(cause, InvalidResponse) for cause in causes):
        return "does not speak Redis's protocol."
    return ""
