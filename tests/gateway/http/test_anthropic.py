"""Anthropic's API as HTTP shows it: whose paths these are, where the key stands, what an error looks like."""

import pytest

from axon.errors import (
    AxonError,
    BudgetSpent,
    Cancelled,
    Conflict,
    DependencyDown,
    Draining,
    EngineError,
    Expired,
    Forbidden,
    InvalidInput,
    LimitReached,
    NotFound,
    Overloaded,
    TooLarge,
    Unauthenticated,
)
from axon.gateway.http.anthropic import body_of, credentials_of, has, status_of
from axon.gateway.http.errors import Internal, MethodNotAllowed, Timeout


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (InvalidInput(), 400, "invalid_request_error"),
        (Unauthenticated(), 401, "authentication_error"),
        (Forbidden(), 403, "permission_error"),
        (NotFound(), 404, "not_found_error"),
        (MethodNotAllowed(), 405, "invalid_request_error"),
        (Timeout(), 408, "timeout_error"),
        (Conflict(), 409, "invalid_request_error"),
        (Cancelled(), 409, "invalid_request_error"),
        (TooLarge(), 413, "request_too_large"),
        (LimitReached(), 429, "rate_limit_error"),
        (BudgetSpent(), 429, "rate_limit_error"),
        (Internal(), 500, "api_error"),
        (EngineError(), 500, "api_error"),
        (Draining(), 503, "api_error"),
        (DependencyDown(), 503, "api_error"),
        (Expired(), 504, "timeout_error"),
        (Overloaded(), 529, "overloaded_error"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, AxonError) else str(each),
)
def test_every_error_has_anthropics_status_and_type(error: AxonError, status: int, kind: str) -> None:
    assert status_of(error) == status
    assert body_of(error, "req_1") == {
        "type": "error",
        "error": {"type": kind, "message": error.message},
        "request_id": "req_1",
    }


def test_a_long_message_is_cut() -> None:
    assert len(body_of(NotFound("x" * 100_000), "")["error"]["message"]) == 1000


@pytest.mark.parametrize(
    ("path", "is_theirs"),
    [
        ("/v1/messages", True),
        ("/v1/messages/count_tokens", True),
        ("/v1/messages/batches", True),
        ("/v1/messagesx", False),
        ("/v1/chat/completions", False),
        ("/messages", False),
    ],
)
def test_its_paths_are_messages_and_what_is_below(path: str, is_theirs: bool) -> None:
    assert has(path) is is_theirs


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], []),
        ([(b"x-api-key", b"axk_1")], [b"Bearer axk_1"]),
        ([(b"authorization", b"Bearer axk_1")], [b"Bearer axk_1"]),
        ([(b"authorization", b"Bearer axk_1"), (b"x-api-key", b" axk_1 ")], [b"Bearer axk_1"]),
        ([(b"authorization", b"Bearer axk_1"), (b"x-api-key", b"axk_2")], [b"Bearer axk_1", b"Bearer axk_2"]),
        ([(b"x-api-key", b"axk_1"), (b"x-api-key", b"axk_1")], [b"Bearer axk_1", b"Bearer axk_1"]),
        ([(b"api-key", b"axk_1"), (b"cookie", b"x-api-key=axk_1")], []),
    ],
)
def test_a_key_stands_in_one_header_or_the_same_in_both(headers: list[tuple[bytes, bytes]], found: list[bytes]) -> None:
    assert credentials_of(headers) == found
