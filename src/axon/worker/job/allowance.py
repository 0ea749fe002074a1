"""How a stream goes on when its tenant's tokens are metered: what may be told, what to ask for, when to pause. Pure.

    told ──────────── limit ─────────────── made
          may be told        held back: made and not yet paid for

The engine runs ahead of what is paid for by a bounded number of tokens. A stream that has so many in hand leaves the
engine, and comes back when few are left: its tokens keep coming at the rate of the refill, it costs the engine nothing
meanwhile, and what it has to compute again when it returns is less than a block.
"""

from dataclasses import dataclass

HIGH, LOW = 64, 16
"""Tokens in hand at which a stream leaves the engine, and at which it comes back."""
LEAST_AHEAD = 32
"""Tokens that are asked for before they are made."""
ROUNDS_AHEAD = 3
"""So many times what was made since the last round: a stream that is not short of tokens never waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream as it stands; all but the allowance count its own tokens."""

    prompt: int
    allowed: float
    """Tokens that are set aside for it, its prompt's included."""
    told: int
    made: int
    recent: int = 0
    """Made since the last round."""
    is_over: bool = False
    """It makes no more."""
    is_paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How it goes on."""

    limit: int
    """Seq up to which it may be told."""
    more: int
    """Tokens to ask for."""
    is_paused: bool


def pace(stream: Stream) -> Pace:
    """What is paid for is told at once; what is made beyond it waits, and is asked for."""
    limit = max(stream.told, int(stream.allowed) - stream.prompt)
    held = max(0, stream.made - limit)
    ahead = 0 if stream.is_over else max(LEAST_AHEAD, ROUNDS_AHEAD * stream.recent)
    more = max(0, stream.made + ahead - limit)
    is_paused = held > LOW if stream.is_paused else held >= HIGH
    return Pace(limit=limit, more=more, is_paused=is_paused and not stream.is_over)
