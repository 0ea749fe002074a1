"""Maps errors to gRPC: a status, a message, and trailing metadata with our code and field. Knows no method."""

from typing import NamedTuple

from grpc import StatusCode

from axon.errors import AxonError, Busy, Cancelled, StreamDiverged
from axon.gateway.http.errors import body_of, clipped, headers_of
from axon.v1 import axon_pb2 as pb

ERROR_KEY = "axon-error-bin"
"""Key of the trailing metadata under which an ``axon.v1.Error`` is kept."""
CODE_KEY = "x-axon-code"
"""Key of the trailing metadata under which the error's code is kept as text."""
_PUSHBACK_KEY = "grpc-retry-pushback-ms"
"""Key that gRPC's clients with a retry policy obey: milliseconds to wait, or -1 for no retry."""
_MAX_DETAILS_CHARS = 100
"""A status message that is not plain ASCII is cut at this length: clients take 8 KB of metadata, and its characters are
written as up to 12 bytes each. The whole message is in the ``Error``."""

_CODES = {
    "invalid": StatusCode.INVALID_ARGUMENT,
    "unauthenticated": StatusCode.UNAUTHENTICATED,
    "forbidden": StatusCode.PERMISSION_DENIED,
    "not_found": StatusCode.NOT_FOUND,
    "gone": StatusCode.NOT_FOUND,
    "conflict": StatusCode.ALREADY_EXISTS,
    "too_large": StatusCode.RESOURCE_EXHAUSTED,
    "limit": StatusCode.RESOURCE_EXHAUSTED,
    "unavailable": StatusCode.UNAVAILABLE,
    "expired": StatusCode.DEADLINE_EXCEEDED,
    "timeout": StatusCode.DEADLINE_EXCEEDED,
    "method": StatusCode.UNIMPLEMENTED,
    "left": StatusCode.CANCELLED,
}

Metadata = tuple[tuple[str, str | bytes], ...]


class Status(NamedTuple):
    """How a call that failed is ended."""

    code: StatusCode
    details: str
    trailing: Metadata


def code_of(error: AxonError) -> StatusCode:
    """Returns the status code of an error; INTERNAL if its kind has none."""
    match error:
        case Busy():
            return StatusCode.ABORTED
        case Cancelled():
            return StatusCode.CANCELLED
        case StreamDiverged():
            return StatusCode.DATA_LOSS
    return _CODES.get(error.kind, StatusCode.INTERNAL)


def status_of(error: AxonError, request_id: str) -> Status:
    """Returns the status that ends a call with this error."""
    body = body_of(error)["error"]
    wait_ms = headers_of(error).get("retry-after-ms")
    told = pb.Error(
        message=body["message"],
        type=body["type"],
        code=body["code"],
        param=body["param"] or "",
        retry_after_ms=None if wait_ms is None else int(wait_ms),
        request_id=request_id,
    )
    trailing = (
        ("x-request-id", request_id),
        (CODE_KEY, error.code),
        (_PUSHBACK_KEY, wait_ms or "-1"),
        (ERROR_KEY, told.SerializeToString()),
    )
    message: str = body["message"]
    details = message if message.isascii() else clipped(message, _MAX_DETAILS_CHARS)
    return Status(code_of(error), details, trailing)
