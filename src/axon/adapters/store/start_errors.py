"""Explains why a database could not be opened: missing role or database, wrong password, read-only file. Opens nothing.

PostgreSQL's client library reports all of these by one class of error, so they are told apart by its English text.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager

from axon.adapters import start_errors
from axon.adapters.service_address import ServiceAddress
from axon.adapters.start_errors import Service, timed_out
from axon.adapters.tls_errors import recognise_words

STORE = Service(
    noun="store",
    port="5432",
    protocol="PostgreSQL's protocol",
    takes_port_from_query=True,
    local="its local socket",
)


def explained(address: ServiceAddress) -> AbstractContextManager[None]:
    """Wraps ``open``: a failure names the host and port, or the file, and the cause; never the password."""
    return start_errors.explained(address, STORE, recognise)


def recognise(_url: str, causes: Sequence[BaseException]) -> str:
    """The predicate for a mistake that people make; empty for any other failure."""
    text = "\n".join(str(cause) for cause in causes)
    if missing := re.search(r'(role|database) "([^"\n]*)" does not exist', text):
        return f"has no {missing[1]} {missing[2]!r}."
    if refused := re.search(r'password authentication failed for user "([^"\n]*)"', text):
        return f"refuses the user {refused[1]!r}: wrong user or password."
    if "no password supplied" in text:
        return "wants a password."
    if certificate := recognise_words(text):
        return certificate
    if missing := re.search(r'root certificate file "([^"\n]*)" does not exist', text):
        return f"cannot be trusted without {missing[1]}: set service_ca_file to a file with its CA's certificate."
    if "server does not support SSL" in text:
        return "does not speak TLS: turn it on there, or write sslmode=disable in its URL."
    if "no encryption" in text and "no pg_hba.conf entry" in text:
        return "wants TLS: write sslmode=verify-full in its URL, or set service_ca_file."
    if "failed to resolve host" in text:
        return "does not answer: there is no such host."
    if "connection timeout expired" in text:
        return timed_out(STORE)
    if "Connection refused" in text:
        return "does not answer: connection refused."
    if "readonly database" in text:
        return "cannot be used: read-only file."
    return ""
