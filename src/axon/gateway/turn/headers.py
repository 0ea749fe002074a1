"""What a request's headers say of its turn: how it is repeated, how long it goes on unread, what its answer adds."""

import math

from starlette.requests import Request

from axon.errors import InvalidInput

STREAM_HEADER = "x-axon-stream"
"""The id of an answer's stream."""
IDS_HEADER = "x-axon-event-ids"
"""With ``true`` every event of a stream has the seq of its last token as its id."""
LEDGER_HEADER = "x-axon-ledger"
"""With ``true`` the end of an answer carries its ledger."""
GRACE_HEADER = "x-axon-reader-grace"
"""Seconds for which a turn goes on without its reader, at most as many as the server allows."""
_MAX_KEY_CHARS = 255


def idempotency_key(request: Request) -> str:
    """The key under which the client may repeat this request; empty where it gave none."""
    key = request.headers.get("idempotency-key", "")
    if len(key) > _MAX_KEY_CHARS:
        raise InvalidInput(f"An Idempotency-Key has at most {_MAX_KEY_CHARS} characters.", param="Idempotency-Key")
    return key


def reader_grace_s(request: Request, *, is_read_later: bool, longest_s: float) -> float | None:
    """Seconds for which the turn goes on without its reader; None for as long as the server allows.

    Unless the client says otherwise, an answer that could not be read later ends with its connection: its id reached
    nobody.
    """
    text = request.headers.get(GRACE_HEADER)
    if text is None:
        return None if is_read_later or idempotency_key(request) else 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InvalidInput(f"{GRACE_HEADER} must be a number of seconds, 0 or more.", param=GRACE_HEADER)
    return min(seconds, longest_s)


def wants_ids(request: Request) -> bool:
    """Whether the reader understands event ids."""
    return "last-event-id" in request.headers or _is_on(request, IDS_HEADER)


def wants_ledger(request: Request) -> bool:
    """Whether the reader asks what its answer took."""
    return _is_on(request, LEDGER_HEADER)


def _is_on(request: Request, header: str) -> bool:
    return request.headers.get(header, "").lower() in ("1", "true")
