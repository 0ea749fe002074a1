"""Decides which tokens the next step computes and takes in what it produced. Pure: no tensors, no clock.

There are no phases: every sequence lets its computed tokens catch up with its known tokens under one budget a step.
A prefill chunk, a decode and a recompute after parking are the same thing. ``schedule`` returns a value and
``settle`` finds sequences by id, so that a later step may be planned before this one is settled.
"""

from collections import deque

from axon.engine.batch import Batch, Span
from axon.engine.blocks import BlockPool
from axon.engine.ending import finish_of
from axon.engine.messages import Add, Emitted, Refused
from axon.engine.sequence import Sequence


class Scheduler:
    """Owns the sequences. ``running`` and ``waiting`` are both in the order of arrival, running ones first."""

    def __init__(
        self,
        pool: BlockPool,
        *,
        max_sequences: int,
        max_batch_tokens: int,
        max_model_len: int,
        eos_ids: frozenset[int] = frozenset(),
    ) -> None:
        self.pool = pool
        self.max_batch_tokens = max_batch_tokens
        # Every running sequence gets a token each step, and each fits into the pool alone: so none waits for ever.
        self.max_sequences = min(max_sequences, max_batch_tokens)
        self.max_model_len = min(max_model_len, pool.num_blocks * pool.block_size)
        self.eos_ids = eos_ids
        self.preemptions = 0
        self._running: list[Sequence] = []
        self._waiting: deque[Sequence] = deque()
        self._sequences: dict[str, Sequence] = {}
        self._refused: list[Refused] = []

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def has_work(self) -> bool:
        return bool(self._sequences or self._refused)

    def add(self, add: Add) -> None:
        """Queues a sequence or refuses it; an id that is known already starts over."""
        self.abort([add.id])
        refusal = self._refusal(add)
        if refusal:
            self._refused.append(refusal)
            return
        sequence = Sequence(add, self.pool.block_size)
        self._sequences[add.id] = sequence
        self._waiting.append(sequence)

    def abort(self, ids: list[str]) -> None:
        """Forgets sequences and frees their blocks; unknown ids are ignored."""
        for sequence in [self._sequences.pop(id) for id in ids if id in self._sequences]:
            if sequence in self._running:
                self._running.remove(sequence)
            else:
                self._waiting.remove(sequence)
            self._free(sequence)

    def schedule(self) -> Batch:
        """Plans a step: the running sequences first, then as many waiting ones as budget and blocks allow."""
        spans = self._plan_running()
        budget = self.max_batch_tokens - sum(len(span.token_ids) for span in spans)
        spans += self._plan_waiting(budget)
        return Batch(tuple(spans))

    def settle(self, batch: Batch, token_ids: list[int]) -> list[Emitted]:
        """Takes in a step's tokens, one for each draw of the batch in order."""
        tokens = iter(token_ids)
        emitted: list[Emitted] = []
        for span in batch.spans:
            token = next(tokens) if span.draw is not None else None
            sequence = self._sequences.get(span.id)
            if sequence is None:
                continue
            self._advance(sequence, span.end)
            if token is not None:
                emitted.append(self._emit(sequence, token))
        return emitted

    def take_refused(self) -> list[Refused]:
        """The sequences refused since the last call."""
        refused, self._refused = self._refused, []
        return refused

    def check(self) -> None:
        """Proves that no block leaked and that every sequence is in exactly one place."""
        self.pool.check(sequence.block_ids for sequence in self._running)
        assert not any(sequence.block_ids for sequence in self._waiting), "a waiting sequence holds blocks"
        everyone = [sequence.id for sequence in [*self._running, *self._waiting]]
        assert sorted(everyone) == sorted(self._sequences), "a sequence is lost or stands in two places"

    def _refusal(self, add: Add) -> Refused | None:
        num_tokens = len(add.prompt_ids) + len(add.output_ids)
        if not add.prompt_ids:
            return Refused(add.id, "invalid_value", "The prompt is empty.")
        if len(add.output_ids) >= add.sampling.max_tokens:
            return Refused(add.id, "invalid_value", "Every token asked for has been emitted already.")
        if num_tokens >= self.max_model_len:
            message = f"The prompt has {num_tokens} tokens; prompt and answer together may have {self.max_model_len}."
            return Refused(add.id, "context_length_exceeded", message)
        return None

    def _plan_running(self) -> list[Span]:
        """Oldest first, parking from the newest end: a sequence that has its span is never parked in the same step."""
        spans: list[Span] = []
        shares = self._shares()
        index = 0
        while index < len(self._running):
            sequence = self._running[index]
            share = shares[sequence.id]
            if not self._make_room(sequence, sequence.num_computed + share):
                break
            spans.append(sequence.span(share))
            index += 1
        return spans

    def _shares(self) -> dict[str, int]:
        """Splits the budget: one token for everybody, so that no stream stalls, the rest to the oldest."""
        spare = self.max_batch_tokens - len(self._running)
        shares: dict[str, int] = {}
        for sequence in self._running:
            extra = min(sequence.num_pending - 1, spare)
            shares[sequence.id] = 1 + extra
            spare -= extra
        return shares

    def _make_room(self, sequence: Sequence, num_tokens: int) -> bool:
        """Extends the sequence's blocks; False when it was itself the newest and had to be parked."""
        num_missing = sequence.num_missing_blocks(num_tokens)
        while not self.pool.can_take([], num_missing):
            if self._park_newest() is sequence:
                return False
        sequence.block_ids += self.pool.take([], num_missing)
        return True

    def _park_newest(self) -> Sequence:
        sequence = self._running.pop()
        self._free(sequence)
        self._waiting.appendleft(sequence)
        self.preemptions += 1
        return sequence

    def _plan_waiting(self, budget: int) -> list[Span]:
        spans: list[Span] = []
        while budget > 0 and self._waiting and len(self._running) < self.max_sequences:
            sequence = self._waiting[0]
            if not self._admit(sequence):
                break
            self._running.append(self._waiting.popleft())
            span = sequence.span(min(sequence.num_pending, budget))
            spans.append(span)
            budget -= len(span.token_ids)
        return spans

    def _admit(self, sequence: Sequence) -> bool:
        """Gives a sequence blocks for all its known tokens at once, so that it is not parked half way through them."""
        # The last known token is always computed, because its logits are needed.
        found = self.pool.find(sequence.full_hashes(sequence.num_tokens - 1))
        num_new = sequence.num_missing_blocks(sequence.num_tokens) - len(found)
        if not self.pool.can_take(found, num_new):
            return False
        sequence.block_ids = self.pool.take(found, num_new)
        sequence.num_computed = len(found) * self.pool.block_size
        return True

    def _advance(self, sequence: Sequence, num_computed: int) -> None:
        first_full = sequence.num_computed // self.pool.block_size
        sequence.num_computed = num_computed
        num_full = num_computed // self.pool.block_size
        if num_full > first_full:
            hashes = sequence.full_hashes(num_computed)
            for index in range(first_full, num_full):
                self.pool.publish(sequence.block_ids[index], hashes[index])

    def _emit(self, sequence: Sequence, token: int) -> Emitted:
        sequence.token_ids.append(token)
        finish = finish_of(
            token=token,
            num_outputs=sequence.num_outputs,
            num_tokens=sequence.num_tokens,
            sampling=sequence.add.sampling,
            eos_ids=self.eos_ids,
            max_model_len=self.max_model_len,
        )
        if finish:
            del self._sequences[sequence.id]
            self._running.remove(sequence)
            self._free(sequence)
        return Emitted(sequence.id, token, finish)

    def _free(self, sequence: Sequence) -> None:
        self.pool.give_back(sequence.block_ids)
        sequence.block_ids = []
        sequence.num_computed = 0
