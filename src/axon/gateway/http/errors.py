"""Errors as OpenAI's clients expect them: status, body and retry headers. The only place that knows the statuses."""

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
_MAX_MESSAGE = 1000
_MAX_PARAM = 200
"""Characters of an error that may repeat a client's own text, such as the name of an unknown model."""


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
    return _STATUS.get(error.kind, 500)


def body_of(error: AxonError) -> dict[str, Any]:
    status = status_of(error)
    kind = _TYPE.get(status, "invalid_request_error" if status < 500 else "server_error")
    if isinstance(error, BudgetSpent | StorageFull):
        kind = BudgetSpent.code  # what clients tell a quota by
    # LangChain takes a prompt that is too long for one only when the message has the code in it.
    message = f"{error.message} ({error.code})" if isinstance(error, ContextTooLong) else error.message
    param = None if error.param is None else clipped(error.param, _MAX_PARAM)
    return {"error": {"message": clipped(message, _MAX_MESSAGE), "type": kind, "param": param, "code": error.code}}


def clipped(text: str, most: int) -> str:
    """The text without its middle where it has more than ``most`` characters: its end says what to do about it."""
    if len(text) <= most:
        return text
    num_last = most // 3
    return f"{text[: most - num_last - 1]}…{text[-num_last:]}"


def headers_of(error: AxonError) -> dict[str, str]:
    """Whether and when the same request may be sent again, in all the words that clients read."""
    headers = {"x-should-retry": "true" if error.retryable else "false"}
    if error.retryable:
        wait_s = error.retry_after_s if error.retry_after_s is not None else _RETRY_AFTER_S
        headers["retry-after-ms"] = str(max(1, math.ceil(wait_s * 1000)))
        headers["retry-after"] = str(max(1, math.ceil(wait_s)))
    if status_of(error) == 401:
        headers["www-authenticate"] = 'Bearer realm="axon"'
    return headers


def encoded(error: AxonError) -> bytes:
    return msgspec.json.encode(body_of(error))
