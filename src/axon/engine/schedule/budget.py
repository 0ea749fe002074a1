"""The token budget of one step: how many tokens each sequence may compute. Knows no blocks and parks nobody."""

from collections.abc import Callable, Collection, Iterable

from axon.engine.batch import Span
from axon.engine.schedule.limits.controller import StepLimits
from axon.engine.schedule.policy import Rank
from axon.engine.schedule.sequence import Sequence
from axon.engine.schedule.slot_queue import Grant


class TokenBudget:
    """Splits a step's tokens: one for each running sequence, so that none stalls, the rest in the given order."""

    def __init__(self, max_batch_tokens: int, limits: StepLimits, *, max_scored_tokens: int) -> None:
        self.max_batch_tokens = max_batch_tokens
        self._max_scored_tokens = max_scored_tokens
        self.limits = limits
        self._num_scored = 0

    def for_starting(self, running: Iterable[Sequence]) -> int:
        """The most tokens that newly started sequences may compute beside these."""
        has_streams = any(sequence.num_pending == 1 for sequence in running)
        most = self.limits.max_prefill_tokens if has_streams else self.max_batch_tokens
        return min(most, self.max_batch_tokens)

    def shares(
        self,
        ready: list[Sequence],
        grants: Collection[Grant],
        *,
        rank: Callable[[Sequence], Rank],
        num_to_compute: Callable[[Sequence], int],
    ) -> dict[str, int]:
        """The tokens of each running sequence, by its id.

        Beside streams, prompts get ``max_prefill_tokens`` together, but each at least one token; none if it is 0. The
        tokens that the starting sequences need are kept for them: a prompt that is under way delays nobody who
        goes before it.
        """
        spare = self.max_batch_tokens - len(ready)
        num_prompts = sum(sequence.num_pending > 1 for sequence in ready)
        are_paused = False
        if num_prompts < len(ready):
            spare = min(spare, self.limits.max_prefill_tokens - num_prompts)
            are_paused = not self.limits.max_prefill_tokens
        entering = [grant.entering for grant in grants if not grant.is_due]
        for grant in grants:
            spare -= num_to_compute(grant.entering) if grant.is_due else 0
        spare = max(spare, 0)
        shares: dict[str, int] = {}
        for sequence in sorted([*ready, *entering], key=rank) if entering else ready:
            if sequence in entering:
                spare -= min(num_to_compute(sequence), spare)
                continue
            if are_paused and sequence.num_pending > 1:
                continue
            extra = min(self.most_of(sequence) - 1, spare)
            shares[sequence.id] = 1 + extra
            if sequence.scores is not None:
                self._num_scored += 1 + extra
            spare -= extra
        return shares

    def most_of(self, sequence: Sequence) -> int:
        """The most tokens of the sequence that the step may compute."""
        if sequence.scores is None:
            return sequence.num_pending
        return min(sequence.num_pending, max(1, self._max_scored_tokens - self._num_scored))

    def count_scored(self, sequence: Sequence, num_tokens: int) -> None:
        """Counts tokens that the step computes of a sequence whose prompt is scored."""
        if sequence.scores is not None:
            self._num_scored += num_tokens

    def left_after(self, spans: list[Span]) -> int:
        """The tokens that the spans of the running sequences leave to those that start."""
        left = self.max_batch_tokens - sum(len(span.token_ids) for span in spans)
        if any(span.is_stream for span in spans):
            num_prefilled = sum(len(span.token_ids) for span in spans if not span.is_stream)
            return min(left, self.limits.max_prefill_tokens - num_prefilled)
        return left
