"""Requests that are refused before the application sees them, each with its whole HTTP response. No I/O.

RFC 9112 (HTTP/1.1) forbids some requests that the parser accepts: ``objection`` finds them.
"""

import re
from collections.abc import Iterable

from axon.errors import AxonError, InvalidInput, Overloaded
from axon.gateway.http.errors import encoded, headers_of


def _response(status: bytes, problem: AxonError) -> bytes:
    """Returns the bytes of a whole HTTP response, for input that never reaches the application as a request."""
    body = encoded(problem)
    headers = "".join(f"{name}: {value}\r\n" for name, value in headers_of(problem).items()).encode()
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\n%bcontent-length: %d\r\n\r\n"
    return head % (status, headers, len(body)) + body


HEADERS_TOO_LONG = _response(
    b"431 Request Header Fields Too Large",
    InvalidInput("The request's headers are too long.", code="headers_too_long"),
)
NOT_HTTP = _response(b"400 Bad Request", InvalidInput("The request is not valid HTTP/1.1.", code="invalid_http"))
_NOT_HTTP_1 = _response(
    b"505 HTTP Version Not Supported",
    InvalidInput("This server speaks HTTP/1.1 and HTTP/1.0.", code="http_version_not_supported"),
)
_INVALID_HOST = _response(
    b"400 Bad Request",
    InvalidInput("An HTTP/1.1 request must have exactly one valid Host header.", code="invalid_host"),
)
_HOST = re.compile(rb"(\[[0-9a-f:.]+\]|\[v[0-9a-f]+\.[^\]]+\]|([a-z0-9._~!$&'()*+,;=-]|%[0-9a-f]{2})+)(:[0-9]*)?")
"""A host of RFC 3986 in lower case, an address or a name, and a port."""
_UNSUPPORTED_CODING = _response(
    b"501 Not Implemented",
    InvalidInput("This server reads no Transfer-Encoding but 'chunked'.", code="unsupported_transfer_encoding"),
)
_UNSUPPORTED_EXPECTATION = _response(
    b"417 Expectation Failed",
    InvalidInput("This server meets no Expect header but '100-continue'.", code="unsupported_expectation"),
)
TOO_MANY_CONNECTIONS = _response(b"503 Service Unavailable", Overloaded(retry_after_s=1.0))


def objection(version: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Returns the response to a request that the parser accepts and RFC 9112 (HTTP/1.1) forbids; else None."""
    if version not in ("1.0", "1.1"):
        return NOT_HTTP if version == "0.9" else _NOT_HTTP_1
    values: dict[bytes, list[bytes]] = {b"host": [], b"transfer-encoding": [], b"expect": []}
    for name, value in headers:
        if name in values:
            values[name].append(value.strip().lower())
    hosts = values[b"host"]
    if len(hosts) > 1 or (version == "1.1" and not hosts) or not all(map(_HOST.fullmatch, hosts)):
        return _INVALID_HOST
    if codings := values[b"transfer-encoding"]:
        if version == "1.0":
            return NOT_HTTP
        if codings != [b"chunked"]:
            return _UNSUPPORTED_CODING
    if any(value != b"100-continue" for value in values[b"expect"]):
        return _UNSUPPORTED_EXPECTATION
    return None
