"""A turn's ledger: tokens and seconds spent on it over all attempts. Values only; the worker keeps a running tally.

    accepted ── queue_s ──► claimed ── prefill_s ──► first token ── decode_s ──► end

    prefilled + cached    its prompt, once for each choice that has begun
    billed                queued + emitted, once, however often they were computed
    computed              prefilled + emitted + replayed + wasted

The times add up to the turn's whole; ``replay_s`` and ``restart_s`` are apart; ``start_s``, ``waited_s`` and
``paced_s`` lie within the others.
"""

from dataclasses import dataclass, field, replace

from axon.domain.times import Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Ledger of one turn. Names that end in ``_s`` are seconds, all others are tokens, except ``attempts`` and
    ``restarts``."""

    queued: int = 0
    """Tokens of its prompts; none if it ended before a worker began it."""
    prefilled: int = 0
    """Prompt tokens computed for the first time, summed over the choices."""
    cached: int = 0
    """Prompt tokens found in the prefix cache, summed over the choices."""
    emitted: int = 0
    """Tokens in its stream."""
    replayed: int = 0
    """Tokens computed again, after an attempt or an engine was lost or the sequence was evicted from the engine."""
    wasted: int = 0
    """Tokens computed and in no stream: after a stop string, held back when a budget ran out, or computed after the
    turn was cancelled."""
    attempts: int = 0
    """Known claims of the job; an attempt that was lost before its first chunk may be missing."""
    queue_s: float = 0.0
    """Seconds until the first worker claimed it."""
    start_s: float = 0.0
    """The part of ``queue_s`` until that worker could take jobs: a turn may have to wait for its model's start."""
    prefill_s: float = 0.0
    """Seconds from the claim to the first token."""
    decode_s: float = 0.0
    """Seconds from the first token to the end, including the time without an owner after a failure."""
    replay_s: float = 0.0
    """Seconds in later attempts from the claim to the first new token."""
    restarts: int = 0
    """Restarts of the whole server that it has come through, as far as known."""
    restart_s: float = 0.0
    """Seconds from the last that was kept of it before a restart until it was claimed again: what was computed and not
    kept, and the time without a server."""
    waited_s: float = 0.0
    """Seconds in which the engine's batches did not include it."""
    paced_s: float = 0.0
    """Seconds in which it was held back to its tenant's rate limit."""
    times: Times | None = field(default=None, compare=False)
    """When its steps happened, for its trace; None in a ledger of an earlier release. Two ledgers with the same figures
    are equal."""

    @property
    def billed(self) -> int:
        """Tokens that its tenant pays for; neither caching nor a failure changes the number."""
        return self.queued + self.emitted

    @property
    def computed(self) -> int:
        """Tokens that engines computed for it, as far as known."""
        return self.prefilled + self.emitted + self.replayed + self.wasted

    @property
    def whole_s(self) -> float:
        """Seconds from the acceptance to the end."""
        return self.queue_s + self.prefill_s + self.decode_s + self.replay_s + self.restart_s


def timed(ledger: Ledger, *, whole_s: float, has_begun: bool) -> Ledger:
    """The ledger at its turn's end: the remaining time goes to the phase in which the turn ended."""
    if not ledger.attempts:
        return replace(ledger, queue_s=max(0.0, whole_s))
    rest_s = whole_s - ledger.queue_s - ledger.replay_s - ledger.restart_s
    if not has_begun:
        return replace(ledger, prefill_s=max(0.0, rest_s))
    return replace(ledger, decode_s=max(0.0, rest_s - ledger.prefill_s))


def latest(ledgers: list[Ledger], *, emitted: int) -> Ledger | None:
    """The turn's ledger, from the ledgers in its stream's chunks; the last one is the most complete."""
    return replace(ledgers[-1], emitted=emitted) if ledgers else None
