"""What a turn took, in tokens and in time, over all attempts at it. Pure; whoever runs the job keeps a tally.

    accepted ── queue_s ──► claimed ── prefill_s ──► first token ── decode_s ──► end

    prefilled + cached    its prompt, once for each choice that has begun
    billed                queued + emitted, once, however often they were computed
    computed              prefilled + emitted + replayed + wasted

The times add up to the turn's whole; ``replay_s`` is apart, ``waited_s`` and ``paced_s`` lie within the others.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Of one turn."""

    queued: int = 0
    """Tokens of its prompt, or of all of them."""
    prefilled: int = 0
    """Tokens of the prompt that were computed for the first time, for each choice."""
    cached: int = 0
    """Tokens of the prompt that were found computed, for each choice."""
    emitted: int = 0
    """Tokens of its stream."""
    replayed: int = 0
    """Tokens that were computed again: an attempt or an engine was lost, or it had to leave the engine for a while."""
    wasted: int = 0
    """Tokens that were computed and are in no stream: behind a stop string, held back when a budget ended, or made
    after the turn was stopped."""
    attempts: int = 0
    """Claims of it that are known of; one that was lost before it said anything may not be."""
    queue_s: float = 0.0
    """Until the first worker took it."""
    prefill_s: float = 0.0
    """From there to its first token."""
    decode_s: float = 0.0
    """From there to its end, with the time in which nobody had it after a loss."""
    replay_s: float = 0.0
    """In later attempts, from the claim to the first token that is new."""
    waited_s: float = 0.0
    """In which it had no place in the engine's steps."""
    paced_s: float = 0.0
    """In which it was held back to its tenant's rate."""

    @property
    def billed(self) -> int:
        """What its tenant pays for: neither a cache nor a failure changes it."""
        return self.queued + self.emitted

    @property
    def computed(self) -> int:
        """What the engines did for it, as far as is known."""
        return self.prefilled + self.emitted + self.replayed + self.wasted


def timed(ledger: Ledger, *, whole_s: float, has_begun: bool) -> Ledger:
    """The ledger at its turn's end: the time that is left belongs to the phase in which it ended."""
    if not ledger.attempts:
        return replace(ledger, queue_s=max(0.0, whole_s))
    if not has_begun:
        return replace(ledger, prefill_s=max(0.0, whole_s - ledger.queue_s - ledger.replay_s))
    return replace(ledger, decode_s=max(0.0, whole_s - ledger.queue_s - ledger.prefill_s - ledger.replay_s))


def told(ledgers: list[Ledger], *, emitted: int) -> Ledger | None:
    """The turn's ledger, from what the chunks of its stream say: the last one knows the most."""
    return replace(ledgers[-1], emitted=emitted) if ledgers else None
