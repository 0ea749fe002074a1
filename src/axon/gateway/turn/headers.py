"""Reads the request headers that concern a turn: idempotency key, session, reader grace, event ids, ledger. Knows no
API."""

import math
import re

from starlette.requests import Request

from axon.errors import InvalidInput

STREAM_HEADER = "x-axon-stream"
"""Response header: the id of the answer's stream."""
IDS_HEADER = "x-axon-event-ids"
"""Request header: ``true`` gives every server-sent event the seq of its last token as its id."""
LEDGER_HEADER = "x-axon-ledger"
"""Request header: ``true`` adds the turn's ledger to the end of the answer."""
GRACE_HEADER = "x-axon-reader-grace"
"""Request header: seconds for which the turn goes on without a reader, at most as many as the server allows."""
SESSION_HEADER = "x-axon-session"
"""Request header: the client's name of the session that a chat belongs to; its turns stay on one version."""
_MAX_KEY_CHARS = 255
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
"""A decimal number. ``float`` alone would take more: ``1_0``, ``infinity``, digits of other scripts."""


def idempotency_key(request: Request) -> str:
    """Returns the key under which the client may repeat this request; empty if it sent none."""
    key = request.headers.get("idempotency-key", "")
    if len(key) > _MAX_KEY_CHARS:
        raise InvalidInput(f"An Idempotency-Key has at most {_MAX_KEY_CHARS} characters.", param="Idempotency-Key")
    return key


def session_name(request: Request) -> str:
    """Returns the name of the session that the request belongs to; empty if it names none."""
    name = request.headers.get(SESSION_HEADER, "")
    if len(name) > _MAX_KEY_CHARS:
        raise InvalidInput(f"{SESSION_HEADER} has at most {_MAX_KEY_CHARS} characters.", param=SESSION_HEADER)
    return name


def reader_grace_s(request: Request, *, is_read_later: bool, longest_s: float) -> float | None:
    """Returns the seconds for which the turn goes on without a reader; None means as long as the server allows.

    Without the header, an answer that nobody could read later (``is_read_later`` is false and the request has no
    idempotency key) ends with its connection, because no client knows its id.
    """
    given = request.headers.getlist(GRACE_HEADER)
    if not given:
        return None if is_read_later or idempotency_key(request) else 0.0
    if len(given) > 1 or not _SECONDS.fullmatch(given[0]) or not math.isfinite(seconds := float(given[0])):
        raise InvalidInput(f"{GRACE_HEADER} must be one number of seconds, 0 or more.", param=GRACE_HEADER)
    return min(seconds, longest_s)


def wants_ids(request: Request) -> bool:
    """Whether the client wants event ids: it asks for them, or resumes by one."""
    return "last-event-id" in request.headers or _is_on(request, IDS_HEADER)


def wants_ledger(request: Request) -> bool:
    """Whether the client asks for the turn's ledger."""
    return _is_on(request, LEDGER_HEADER)


def _is_on(request: Request, header: str) -> bool:
    return request.headers.get(header, "").lower() in ("1", "true")
