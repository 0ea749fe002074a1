"""Paces a stream by its tenant's token bucket: what it may append, what to ask for, when to pause. Pure functions.

    logged ────────────── limit ─────────────── made
            may be appended     held back: computed, not yet granted

The engine computes a bounded number of tokens ahead of what the bucket grants. Hysteresis: a stream with ``PAUSE_AT``
tokens held back leaves the engine and returns at ``RESUME_AT``. Its tokens keep coming at the bucket's refill rate, it
costs the engine nothing meanwhile, and it recomputes less than a KV block when it returns.
"""

from dataclasses import dataclass

PAUSE_AT, RESUME_AT = 64, 16
"""Tokens held back at which a stream leaves the engine, and at which it returns."""
LEAST_AHEAD = 32
"""Tokens that are asked for at least before they are computed."""
ROUNDS_AHEAD = 3
"""A stream asks for this many times the tokens of its last round, so that one with enough granted never waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The state of a stream, in tokens; all fields but ``prompt`` and ``allowed`` count output tokens."""

    prompt: int
    allowed: float
    """Tokens granted so far, those of the prompt included."""
    logged: int
    """Tokens in the log."""
    made: int
    """Tokens computed."""
    recent: int = 0
    """Tokens computed since the last round."""
    is_over: bool = False
    """The engine has ended the stream."""
    is_paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Decision on a stream until the next round."""

    limit: int
    """Last seq that may be appended to the log."""
    more: int
    """Tokens to ask admission for."""
    is_paused: bool


def pace(stream: Stream) -> Pace:
    """Decides how a stream goes on: granted tokens are appended at once, tokens beyond the grant are held back."""
    limit = max(stream.logged, int(stream.allowed) - stream.prompt)
    held = max(0, stream.made - limit)
    ahead = 0 if stream.is_over else max(LEAST_AHEAD, ROUNDS_AHEAD * stream.recent)
    more = max(0, stream.made + ahead - limit)
    is_paused = held > RESUME_AT if stream.is_paused else held >= PAUSE_AT
    return Pace(limit=limit, more=more, is_paused=is_paused and not stream.is_over)
