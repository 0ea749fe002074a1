"""Maps errors to HTTP as OpenAI's clients expect it: status, body and retry headers. Knows no route."""

import math
from typing import Any

import msgspec

from axon.errors import AxonError, BudgetSpent, ContextTooLong, StorageFull

_STATUS = {
    "invalid": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "limit": 429,
    "unavailable": 503,
    "expired": 504,
}
_TYPE = {429: "rate_limit_error", 401: "authentication_error", 403: "permission_error"}
_RETRY_AFTER_S = 1.0
"""Clients are asked to wait this long before a retry if the error names no time of its own."""
_MAX_MESSAGE_CHARS = 1000
_MAX_PARAM_CHARS = 200
"""A message and a parameter are cut at this length, because they may repeat the client's own text."""


class Internal(AxonError):
    """The server had an error while processing your request."""


class Timeout(AxonError):
    """The request's body did not come in time."""

    kind = "timeout"
    code = "request_timeout"


class Gone(AxonError):
    """The stream is past its retention time."""

    kind = "gone"
    code = "stream_expired"


class MethodNotAllowed(AxonError):
    """This path does not take that method."""

    kind = "method"
    code = "method_not_allowed"


class ClientLeft(AxonError):
    """The client went away before the answer was there."""

    kind = "left"
    code = "client_closed_request"


_STATUS |= {Timeout.kind: 408, Gone.kind: 410, MethodNotAllowed.kind: 405, ClientLeft.kind: 499}


def status_of(error: AxonError) -> int:
    """Returns the HTTP status of an error; 500 if its kind has none."""
    return _STATUS.get(error.kind, 500)


def body_of(error: AxonError) -> dict[str, Any]:
    """Returns the JSON body of an error: ``{"error": {message, type, param, code}}``."""
    status = status_of(error)
    kind = _TYPE.get(status, "invalid_request_error" if status < 500 else "server_error")
    if isinstance(error, BudgetSpent | StorageFull):
        kind = BudgetSpent.code  # OpenAI's clients recognise a spent quota by this type
    # LangChain recognises a prompt that is too long only if the message contains the code.
    message = f"{error.message} ({error.code})" if isinstance(error, ContextTooLong) else error.message
    param = None if error.param is None else clipped(error.param, _MAX_PARAM_CHARS)
    return {
        "error": {"message": clipped(message, _MAX_MESSAGE_CHARS), "type": kind, "param": param, "code": error.code}
    }


def clipped(text: str, max_chars: int) -> str:
    """Cuts the middle out of a text longer than ``max_chars``; its end stays, which says what to do about the error."""
    if len(text) <= max_chars:
        return text
    num_last = max_chars // 3
    return f"{text[: max_chars - num_last - 1]}…{text[-num_last:]}"


def headers_of(error: AxonError) -> dict[str, str]:
    """Returns the headers that say whether and when to retry, in each of the forms that clients read."""
    headers = {"x-should-retry": "true" if error.retryable else "false"}
    if error.retryable:
        wait_s = error.retry_after_s if error.retry_after_s is not None else _RETRY_AFTER_S
        headers["retry-after-ms"] = str(max(1, math.ceil(wait_s * 1000)))
        headers["retry-after"] = str(max(1, math.ceil(wait_s)))
    if status_of(error) == 401:
        headers["www-authenticate"] = 'Bearer realm="axon"'
    return headers


def encoded(error: AxonError) -> bytes:
    """Returns ``body_of`` the error as JSON bytes."""
    return msgspec.json.encode(body_of(error))
