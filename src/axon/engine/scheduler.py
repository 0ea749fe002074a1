"""Decides which tokens the next step computes and takes in what it produced. Pure: no tensors, no clock.

There are no phases: every sequence lets its computed tokens catch up with its known tokens under one budget a step.
A prefill chunk, a decode and a recompute after parking are the same thing.

A step may be planned before the one before it is settled: ``schedule, schedule, settle, schedule, settle …`` is as
good as ``schedule, settle, schedule, settle …``. The later step then holds placeholders for what the earlier one
draws (the runner puts the tokens in, see ``batch.fill``), and steps are settled and run in the order of their planning.
"""

from collections.abc import Iterable
from itertools import count, islice

from axon.engine.batch import Batch, Drawn, Span
from axon.engine.blocks import BlockPool
from axon.engine.ending import finish_of
from axon.engine.messages import Add, Emitted, Refused
from axon.engine.pace import Outlook
from axon.engine.policy import Fair, Policy, Rank
from axon.engine.sequence import Sequence

NO_DRAFTS = 1.0
"""A price that no guess is worth."""


class Scheduler:
    """Owns the sequences; the policy says whose turn it is."""

    def __init__(
        self,
        pool: BlockPool,
        *,
        max_sequences: int,
        max_batch_tokens: int,
        max_model_len: int,
        max_prefill_tokens: int = 0,
        eos_ids: frozenset[int] = frozenset(),
        policy: Policy | None = None,
        version: str = "",
    ) -> None:
        self.pool = pool
        self.max_batch_tokens = max_batch_tokens
        self.max_prefill_tokens = max_prefill_tokens or max_batch_tokens
        # Every running sequence gets a token each step, and each fits into the pool alone: so none waits for ever.
        self.max_sequences = min(max_sequences, max_batch_tokens)
        self.max_model_len = min(max_model_len, pool.num_blocks * pool.block_size)
        self.eos_ids = eos_ids
        self.preemptions = 0
        self.draft_price = NO_DRAFTS
        """What a guess costs, against a token that is sure. With guesses, a step is settled before the next is made."""
        self.num_drafted = self.num_accepted = 0
        self._policy = policy or Fair()
        self._version = version
        self._arrivals = count()
        self._running: list[Sequence] = []
        self._waiting: list[Sequence] = []
        self._sequences: dict[str, Sequence] = {}
        self._refused: list[Refused] = []

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def waiting_ids(self) -> list[str]:
        return [sequence.id for sequence in self._waiting]

    @property
    def has_work(self) -> bool:
        return bool(self._sequences or self._refused)

    def outlook(self) -> Outlook:
        """What the next step has to do for the streams, and where the prompt stands that is prefilled next to them."""
        streams = [sequence.num_tokens for sequence in self._running if sequence.num_pending == 1]
        prompts = [sequence.num_computed for sequence in self._running if sequence.num_pending > 1]
        return Outlook(len(streams), sum(streams), prompts[0] if prompts else 0)

    def add(self, add: Add) -> None:
        """Queues a sequence or refuses it; an id that is known already starts over."""
        self.abort([add.id])
        refusal = self._refusal(add)
        if refusal:
            self._refused.append(refusal)
            return
        salt = f"{self._version}\0{add.tenant}"
        sequence = Sequence(add, next(self._arrivals), self.pool.block_size, salt)
        self._sequences[add.id] = sequence
        self._waiting.append(sequence)
        self._policy.arrive(sequence.claim)

    def abort(self, ids: Iterable[str]) -> None:
        """Forgets sequences and frees their blocks; unknown ids are ignored."""
        for id in ids:
            if id in self._sequences:
                self._end(self._sequences[id])

    def schedule(self, now: float = 0.0) -> Batch:
        """Plans a step: the running sequences first, then as many waiting ones as budget and blocks allow."""
        self._expire(now)
        self._running.sort(key=self._rank)
        spans = self._plan_running()
        spans += self._plan_waiting(self._spare(spans))
        return Batch(tuple(spans))

    def settle(self, batch: Batch, drawn: list[Drawn]) -> list[Emitted]:
        """Takes in a step's tokens, one for each draw of the batch in order."""
        results = iter(drawn)
        emitted: list[Emitted] = []
        for span in batch.spans:
            result = next(results) if span.draw is not None else None
            behind = list(islice(results, len(span.drafts))) if span.drafts else []
            sequence = self._sequences.get(span.id)
            if sequence is None or sequence.arrival != span.arrival:
                continue
            if result is None:
                self._advance(sequence, span, span.end, 0)
            elif not behind:
                emitted.append(self._emit(sequence, result))
                self._advance(sequence, span, span.end, 1)
                if emitted[-1].finish:
                    self._end(sequence)
            else:
                emitted += self._take_guessed(sequence, span, [result, *behind])
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
        if add.weight <= 0:
            return Refused(add.id, "invalid_value", "A tenant's weight must be more than 0.")
        if len(add.output_ids) >= add.sampling.max_tokens:
            return Refused(add.id, "invalid_value", "Every token asked for has been emitted already.")
        if num_tokens >= self.max_model_len:
            message = f"The prompt has {num_tokens} tokens; prompt and answer together may have {self.max_model_len}."
            return Refused(add.id, "context_length_exceeded", message)
        return None

    def _expire(self, now: float) -> None:
        for sequence in list(self._sequences.values()):
            if sequence.add.deadline is not None and sequence.add.deadline <= now:
                self._end(sequence)
                self._refused.append(Refused(sequence.id, "deadline_exceeded", "The deadline has passed."))

    def _rank(self, sequence: Sequence) -> Rank:
        return self._policy.rank(sequence.claim)

    def _plan_running(self) -> list[Span]:
        """In the policy's order, parking from its end: a sequence that has its span is not parked in the same step."""
        shares = self._shares()
        index = 0
        while index < len(self._running):
            sequence = self._running[index]
            if not self._make_room(sequence, sequence.num_computed + shares.get(sequence.id, 0)):
                break
            index += 1
        running = [(sequence, share) for sequence in self._running if (share := shares.get(sequence.id, 0))]
        if self.draft_price >= NO_DRAFTS:
            return [sequence.plan(share, self.eos_ids) for sequence, share in running]
        # Guesses come last: the room that they take is nobody's.
        spare = self.max_batch_tokens - sum(shares.values())
        spans: list[Span] = []
        for sequence, share in running:
            guesses = self._guess(sequence, spare)
            spare -= len(guesses)
            spans.append(sequence.plan(share, self.eos_ids, guesses))
        return spans

    def _guess(self, sequence: Sequence, spare: int) -> list[int]:
        """Tokens that may follow its last, as far as the budget and the blocks that nobody holds allow."""
        guesses = sequence.guess(price=self.draft_price, most=spare, max_model_len=self.max_model_len)
        num_missing = sequence.num_missing_blocks(sequence.num_tokens + len(guesses)) if guesses else 0
        if num_missing:
            if not self.pool.can_take([], num_missing):
                return []
            sequence.block_ids += self.pool.take([], num_missing)
        return guesses

    def _shares(self) -> dict[str, int]:
        """Splits the budget: one token for everybody, so that no stream stalls, the rest in the policy's order."""
        ready = [sequence for sequence in self._running if self._is_ready(sequence)]
        spare = self.max_batch_tokens - len(ready)
        if any(sequence.num_pending == 1 for sequence in ready):
            spare = min(spare, self.max_prefill_tokens)
        shares: dict[str, int] = {}
        for sequence in ready:
            extra = min(sequence.num_pending - 1, spare)
            shares[sequence.id] = 1 + extra
            spare -= extra
        return shares

    def _is_ready(self, sequence: Sequence) -> bool:
        """Not while two of its tokens are still to be drawn, nor when the one in flight is its last."""
        has_room = sequence.num_outputs < sequence.add.sampling.max_tokens and sequence.num_tokens < self.max_model_len
        return has_room and sequence.num_unknown < 2

    def _spare(self, spans: list[Span]) -> int:
        """What the running sequences leave of the budget."""
        spare = self.max_batch_tokens - sum(len(span.token_ids) for span in spans)
        if any(span.is_stream for span in spans):
            num_prefilled = sum(len(span.token_ids) - len(span.drafts) - 1 for span in spans)
            return min(spare, self.max_prefill_tokens - num_prefilled)
        return spare

    def _make_room(self, sequence: Sequence, num_tokens: int) -> bool:
        """Extends the sequence's blocks; False when it was itself the last in the order and had to be parked."""
        num_missing = sequence.num_missing_blocks(num_tokens)
        while not self.pool.can_take([], num_missing):
            if self._park_last() is sequence:
                return False
        sequence.block_ids += self.pool.take([], num_missing)
        return True

    def _park_last(self) -> Sequence:
        sequence = self._running.pop()
        self._free(sequence)
        self._waiting.append(sequence)
        self.preemptions += 1
        return sequence

    def _plan_waiting(self, budget: int) -> list[Span]:
        """The first in the order that finds no blocks keeps the others waiting too: the room it needs is not theirs."""
        spans: list[Span] = []
        promised = self._promised()
        for sequence in sorted(self._waiting, key=self._rank):
            if budget <= 0 or len(self._running) >= self.max_sequences:
                break
            # Parked with a token in flight, or about to find its next block computed by another: a matter of steps.
            if sequence.num_unknown or self._next_hash(sequence) in promised:
                continue
            if not self._admit(sequence):
                break
            self._waiting.remove(sequence)
            self._running.append(sequence)
            promised.update(self._hashes_ahead(sequence))
            span = sequence.plan(min(sequence.num_pending, budget), self.eos_ids)
            spans.append(span)
            budget -= len(span.token_ids)
        return spans

    def _promised(self) -> set[bytes]:
        """Hashes of the blocks that running sequences are about to have computed."""
        if not self._waiting:
            return set()
        return {block_hash for sequence in self._running for block_hash in self._hashes_ahead(sequence)}

    def _hashes_ahead(self, sequence: Sequence) -> list[bytes]:
        return sequence.full_hashes(sequence.num_known)[sequence.num_settled // self.pool.block_size :]

    def _next_hash(self, sequence: Sequence) -> bytes | None:
        """Of the first full block that is not cached."""
        hashes = sequence.full_hashes(sequence.num_tokens - 1)
        num_found = len(self.pool.find(hashes))
        return hashes[num_found] if num_found < len(hashes) else None

    def _admit(self, sequence: Sequence) -> bool:
        """Gives a sequence blocks for all its known tokens at once, so that it is not parked half way through them."""
        # The last known token is always computed, because its logits are needed.
        found = self.pool.find(sequence.full_hashes(sequence.num_tokens - 1))
        num_new = sequence.num_missing_blocks(sequence.num_tokens) - len(found)
        if not self.pool.can_take(found, num_new):
            return False
        sequence.block_ids = self.pool.take(found, num_new)
        sequence.num_computed = sequence.num_settled = len(found) * self.pool.block_size
        sequence.num_admissions += 1
        if sequence.num_cached is None:
            sequence.num_cached = min(sequence.num_computed, len(sequence.add.prompt_ids))
            sequence.num_charged = sequence.num_computed
        return True

    def _take_guessed(self, sequence: Sequence, span: Span, drawn: list[Drawn]) -> list[Emitted]:
        """With guesses: what was drawn behind a wrong one, or behind the end, is none of the sequence's tokens."""
        num_right = span.num_right(drawn)
        sequence.drafter.learn(num_guessed=len(span.drafts), num_right=num_right)
        self.num_drafted += len(span.drafts)
        self.num_accepted += num_right
        emitted: list[Emitted] = []
        for each in drawn[: num_right + 1]:
            emitted.append(self._emit(sequence, each))
            if emitted[-1].finish:
                break
        # The last token drawn is not computed; those guessed right are.
        self._advance(sequence, span, span.end - len(span.drafts) + len(emitted) - 1, len(emitted))
        if emitted[-1].finish:
            self._end(sequence)
        return emitted

    def _advance(self, sequence: Sequence, span: Span, end: int, num_emitted: int) -> None:
        """Counts a span as computed; its full blocks can be found from now on, generated tokens included."""
        prefilled = max(0, min(end, sequence.num_given) - sequence.num_charged)
        sequence.num_charged += prefilled
        self._policy.charge(sequence.claim, prefilled=prefilled, emitted=num_emitted)
        if not sequence.block_ids or span.admission != sequence.num_admissions:
            return  # parked since: the blocks are another's
        sequence.num_settled = end
        sequence.num_computed = max(sequence.num_computed, end)
        first_full, num_full = span.first // self.pool.block_size, end // self.pool.block_size
        if num_full > first_full:
            hashes = sequence.full_hashes(end)
            for index in range(first_full, num_full):
                self.pool.publish(sequence.block_ids[index], hashes[index])

    def _emit(self, sequence: Sequence, drawn: Drawn) -> Emitted:
        sequence.learn(drawn.token)
        finish = finish_of(
            token=drawn.token,
            num_outputs=sequence.num_known - len(sequence.add.prompt_ids),
            num_tokens=sequence.num_known,
            sampling=sequence.add.sampling,
            eos_ids=self.eos_ids,
            max_model_len=self.max_model_len,
        )
        cached, sequence.num_cached = sequence.num_cached or 0, 0
        return Emitted(sequence.id, drawn.token, finish, drawn.logprob, list(drawn.top), cached)

    def _end(self, sequence: Sequence) -> None:
        del self._sequences[sequence.id]
        (self._running if sequence in self._running else self._waiting).remove(sequence)
        self._free(sequence)
        self._policy.leave(sequence.claim)

    def _free(self, sequence: Sequence) -> None:
        self.pool.give_back(sequence.block_ids)
        sequence.block_ids = []
        sequence.num_computed = sequence.num_settled = 0
