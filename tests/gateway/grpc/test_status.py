"""Every error of ours has a gRPC status, and its code, field and time travel with it."""

import base64
from urllib.parse import quote

import pytest
from grpc import StatusCode

from axon.errors import (
    AxonError,
    BudgetSpent,
    Busy,
    Cancelled,
    Conflict,
    ContextTooLong,
    DependencyDown,
    Draining,
    EngineError,
    Expired,
    Forbidden,
    InvalidInput,
    KeyRevoked,
    LimitReached,
    NotFound,
    Overloaded,
    StreamDiverged,
    TooLarge,
    Unauthenticated,
    Unsupported,
)
from axon.gateway.grpc.status import CODE_KEY, ERROR_KEY, code_of, status_of
from axon.gateway.http.errors import ClientLeft, Gone, Internal, MethodNotAllowed, Timeout
from axon.v1 import axon_pb2 as pb

CODES = {
    InvalidInput: StatusCode.INVALID_ARGUMENT,
    ContextTooLong: StatusCode.INVALID_ARGUMENT,
    Unsupported: StatusCode.INVALID_ARGUMENT,
    Unauthenticated: StatusCode.UNAUTHENTICATED,
    KeyRevoked: StatusCode.UNAUTHENTICATED,
    Forbidden: StatusCode.PERMISSION_DENIED,
    NotFound: StatusCode.NOT_FOUND,
    Gone: StatusCode.NOT_FOUND,
    TooLarge: StatusCode.RESOURCE_EXHAUSTED,
    LimitReached: StatusCode.RESOURCE_EXHAUSTED,
    BudgetSpent: StatusCode.RESOURCE_EXHAUSTED,
    Conflict: StatusCode.ALREADY_EXISTS,
    Busy: StatusCode.ABORTED,
    Cancelled: StatusCode.CANCELLED,
    ClientLeft: StatusCode.CANCELLED,
    Overloaded: StatusCode.UNAVAILABLE,
    Draining: StatusCode.UNAVAILABLE,
    DependencyDown: StatusCode.UNAVAILABLE,
    Expired: StatusCode.DEADLINE_EXCEEDED,
    Timeout: StatusCode.DEADLINE_EXCEEDED,
    MethodNotAllowed: StatusCode.UNIMPLEMENTED,
    StreamDiverged: StatusCode.DATA_LOSS,
    EngineError: StatusCode.INTERNAL,
    Internal: StatusCode.INTERNAL,
}


@pytest.mark.parametrize(("kind", "code"), CODES.items(), ids=lambda each: getattr(each, "__name__", str(each)))
def test_every_kind_has_its_code(kind: type[AxonError], code: StatusCode) -> None:
    assert code_of(kind()) is code


def test_the_error_travels_in_the_trailing_metadata() -> None:
    error = LimitReached("Too much.", param="model", retry_after_s=1.5)
    code, details, trailing = status_of(error, "req_1")
    told = dict(trailing)
    assert (code, details) == (StatusCode.RESOURCE_EXHAUSTED, "Too much.")
    assert (told[CODE_KEY], told["x-request-id"], told["grpc-retry-pushback-ms"]) == (error.code, "req_1", "1500")
    found = told[ERROR_KEY]
    assert isinstance(found, bytes)
    assert pb.Error.FromString(found) == pb.Error(
        message="Too much.",
        type="rate_limit_error",
        code="rate_limit_exceeded",
        param="model",
        retry_after_ms=1500,
        request_id="req_1",
    )


def test_an_error_that_no_retry_helps_says_so() -> None:
    told = dict(status_of(BudgetSpent(), "req_1").trailing)
    assert told["grpc-retry-pushback-ms"] == "-1"
    found = told[ERROR_KEY]
    assert isinstance(found, bytes)
    assert not pb.Error.FromString(found).HasField("retry_after_ms")


@pytest.mark.parametrize("text", ["更", "%", "a", "🙂"])
def test_a_clients_own_text_cannot_fill_the_metadata(text: str) -> None:
    _, details, trailing = status_of(InvalidInput(text * 100_000, param=text * 100_000), "req_1")
    sizes = [len(value) if isinstance(value, str) else len(base64.b64encode(value)) for _, value in trailing]
    assert len(quote(details)) + sum(sizes) + sum(32 + len(name) for name, _ in trailing) < 8192
    assert all(value.isascii() for _, value in trailing if isinstance(value, str))
