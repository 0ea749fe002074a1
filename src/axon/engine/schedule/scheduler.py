"""Decides which tokens the next step computes and takes in what it produced. Pure: no tensors, no clock.

There are no phases: every sequence lets its computed tokens catch up with its known tokens under one budget a step.
A prefill chunk, a decode and a recompute after parking are the same thing.

A step may be planned before the one before it is settled: ``schedule, schedule, settle, schedule, settle …`` is as
good as ``schedule, settle, schedule, settle …``. The later step then holds placeholders for what the earlier one
draws (the runner puts the tokens in, see ``batch.fill``), and steps are settled and run in the order of their planning.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import count, islice

from axon.engine.batch import Batch, Drawn, Span
from axon.engine.protocol.messages import Add, Emitted, Refused, Scored
from axon.engine.schedule.allocation import Room
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.finish import finish_of
from axon.engine.schedule.learned_controller import Outlook
from axon.engine.schedule.policy import Fair, Policy, Rank
from axon.engine.schedule.sequence import Sequence
from axon.engine.schedule.sequence_limits import Bounds
from axon.engine.schedule.slot_queue import Line, Move
from axon.engine.schedule.tiers import Tiers

NO_DRAFTS = 1.0
"""A price that no guess is worth."""

SCORED_TOKENS = 64
"""Most tokens of a step whose logprobs are asked for: each has a row as wide as the vocabulary."""

PATIENCE = 256
"""Steps after which the first by rank, if it waits for blocks, is passed by nobody."""


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
        scores_prompts: bool = True,
    ) -> None:
        self.pool = pool
        self.max_batch_tokens = max_batch_tokens
        self.max_prefill_tokens = max_prefill_tokens or max_batch_tokens
        # Every running sequence gets a token each step, and each fits into the pool alone: so none waits for ever.
        self.max_sequences = min(max_sequences, max_batch_tokens)
        self.max_model_len = min(max_model_len, pool.num_blocks * pool.block_size)
        self.eos_ids = eos_ids
        self.preemptions = 0
        """Sequences parked because blocks ran out, the pool's or their tenant's, since the start."""
        self.yielded = 0
        """Sequences parked because their slot was another's part, since the start."""
        self.draft_price = NO_DRAFTS
        """What a guess costs, against a token that is sure. With guesses, a step is settled before the next is made."""
        self.num_drafted = self.num_accepted = 0
        self._policy = policy or Fair()
        self._room = Room(pool)
        self._bounds = Bounds(
            max_model_len=self.max_model_len,
            num_blocks=pool.num_blocks,
            block_size=pool.block_size,
            scores_prompts=scores_prompts,
        )
        self._version = version
        self._arrivals = count()
        self._tiers = Tiers()
        self._running: list[Sequence] = []
        self._waiting: list[Sequence] = []
        self._sequences: dict[str, Sequence] = {}
        self._refused: list[Refused] = []
        self._scored: list[Scored] = []
        self._num_scored = 0
        """Tokens of the step that is planned whose logprobs are asked for."""
        self._out_of_blocks: set[str | None] = set()
        """Tenants who parked one of theirs in this step because of their share; None: somebody, because of the pool."""
        self._lacked: Sequence | None = None
        """Who is first by rank and has lacked blocks, and for how many steps it waits since."""
        self._num_lacked = 0
        self._is_quiet = False
        """As long as nobody comes or goes, nobody who waits gets another's slot."""

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def running_by_priority(self) -> dict[int, int]:
        return dict(Counter(sequence.claim.priority for sequence in self._running))

    @property
    def waiting_ids(self) -> list[str]:
        return [sequence.id for sequence in self._waiting]

    @property
    def has_work(self) -> bool:
        return bool(self._sequences or self._refused)

    @property
    def has_prompts(self) -> bool:
        """Whether the next step may have more to do than to go on with streams."""
        return bool(self._waiting) or any(sequence.num_pending > 1 for sequence in self._running)

    def outlook(self) -> Outlook:
        """What the next step has to do for the streams, and where the prompt stands that is prefilled next to them."""
        ready = self._ready()
        streams = [sequence.num_tokens for sequence in ready if sequence.num_pending == 1]
        prompts = [sequence.num_computed for sequence in ready if sequence.num_pending > 1]
        return Outlook(len(streams), sum(streams), prompts[0] if prompts else 0)

    def add(self, add: Add) -> None:
        """Queues a sequence or refuses it; an id that is known already starts over."""
        self.abort([add.id])
        refusal = self._bounds.refusal(add)
        if refusal:
            self._refused.append(refusal)
            return
        salt = f"{self._version}\0{add.tenant}"
        arrival = next(self._arrivals)
        if add.sampling.prompt_logprobs:
            salt += f"\0{arrival}"  # what is found computed has no logprobs
        sequence = Sequence(
            add,
            arrival,
            self.pool.block_size,
            salt,
            self._bounds.max_blocks(add),
            self._bounds.max_len(add),
        )
        self._policy.arrive(sequence.claim, {waiting.claim.tenant for waiting in self._waiting})
        self._sequences[add.id] = sequence
        self._waiting.append(sequence)
        self._is_quiet = False

    def abort(self, ids: Iterable[str]) -> None:
        """Forgets sequences and frees their blocks; unknown ids are ignored."""
        for id in ids:
            if id in self._sequences:
                self._end(self._sequences[id])

    def schedule(self, now: float = 0.0) -> Batch:
        """Plans a step: the running sequences first, then as many waiting ones as slots, budget and blocks allow."""
        self._expire(now)
        moves = self._line_up()
        self._running.sort(key=self._rank)
        self._out_of_blocks.clear()
        self._num_scored = 0
        spans = self._plan_running(moves)
        spans += self._start(moves, self._spare(spans))
        self._tiers.next_step()
        return Batch(tuple(spans))

    def settle(self, batch: Batch, drawn: list[Drawn]) -> list[Emitted]:
        """Takes in a step's tokens, one for each draw of the batch in order."""
        results = iter(drawn)
        emitted: list[Emitted] = []
        for span in batch.spans:
            if span.scores:
                self._take_scores(span, list(islice(results, len(span.scores))))
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

    def take_scored(self) -> list[Scored]:
        """What prompts' logprobs have become known since the last call."""
        scored, self._scored = self._scored, []
        return scored

    def check(self) -> None:
        """Proves that no block leaked and that every sequence is in exactly one place."""
        everyone = [*self._running, *self._waiting]
        self.pool.check(sequence.block_ids for sequence in everyone)
        assert len(self._running) <= self.max_sequences, "more sequences run than there are slots"
        for sequence in everyone:
            room = len(sequence.block_ids) * self.pool.block_size
            assert sequence.num_settled <= sequence.num_computed <= room, "computed tokens stand in no block"
        ids = [sequence.id for sequence in everyone]
        assert sorted(ids) == sorted(self._sequences), "a sequence is lost or stands in two places"

    def _expire(self, now: float) -> None:
        for sequence in list(self._sequences.values()):
            if sequence.add.deadline is not None and sequence.add.deadline <= now:
                self._end(sequence)
                self._refused.append(Refused(sequence.id, "deadline_exceeded", "The deadline has passed."))

    def _rank(self, sequence: Sequence) -> Rank:
        return self._policy.rank(sequence.claim)

    def _line_up(self) -> list[Move]:
        """The waiting sequences that are to start now, in their order; those whose slots they get are parked for it."""
        if not self._waiting or (self._is_quiet and len(self._running) >= self.max_sequences):
            return []
        line = Line(self.max_sequences, self._policy, running=self._running, waiting=self._waiting)
        if self._lacked is not line.first:
            self._lacked, self._num_lacked = None, 0
        if self._lacked or not self._room.has_for(line.first, self._waiting):
            # It is not passed when there are enough of them at last, either.
            self._lacked, self._num_lacked = line.first, self._num_lacked + 1
            line.is_strict, line.is_closed = True, self._num_lacked > PATIENCE
        budget = self.max_batch_tokens
        if any(sequence.num_pending == 1 for sequence in self._running):
            budget = self.max_prefill_tokens
        promised = self._promised()
        moves: list[Move] = []
        while budget > 0 and (move := line.head()):
            sequence = move.entering
            # Parked with a token in flight, or about to find its next block computed by another: a matter of steps.
            is_soon = sequence.num_unknown or self._room.next_hash(sequence) in promised
            if is_soon or not self._room.is_within_share(sequence, self._waiting):
                line.leave(move)
                continue
            if move.yielding is not None:
                if not self._room.has_for(sequence, [*self._waiting, move.yielding]):
                    return moves
                self._yield_slot(move.yielding)
            line.take(move)
            moves.append(move)
            promised.update(self._room.hashes_ahead(sequence))
            budget -= self._room.num_to_compute(sequence)
        self._is_quiet = line.is_quiet and not moves
        return moves

    def _yield_slot(self, sequence: Sequence) -> None:
        """Parks a sequence that keeps its blocks: while nobody else needs them, going on costs nothing."""
        self._running.remove(sequence)
        self._waiting.append(sequence)
        self._is_quiet = False
        self.yielded += 1

    def _plan_running(self, moves: list[Move]) -> list[Span]:
        """In the policy's order, parking from its end: a sequence that has its span is not parked in the same step."""
        shares = self._shares(moves)
        index = 0
        while index < len(self._running):
            sequence = self._running[index]
            if self._make_room(sequence, sequence.num_computed + shares.get(sequence.id, 0)):
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
        guesses = sequence.guess(price=self.draft_price, most=spare)
        num_missing = sequence.num_missing_blocks(sequence.num_tokens + len(guesses)) if guesses else 0
        if num_missing:
            if not self._room.can_extend(num_missing) or not self._room.may_extend(sequence, num_missing):
                return []
            self._room.extend(sequence, num_missing)
        return guesses

    def _shares(self, moves: list[Move]) -> dict[str, int]:
        """Splits the budget: one token for everybody, so that no stream stalls, the rest in the policy's order.

        What those need who are to start is kept for them: a prompt that goes on delays nobody who goes before it.
        """
        ready = self._ready(num_starting=len(moves))
        spare = self.max_batch_tokens - len(ready)
        if any(sequence.num_pending == 1 for sequence in ready):
            spare = min(spare, self.max_prefill_tokens)
        entering = [move.entering for move in moves if not move.is_due]
        for move in moves:
            spare -= self._room.num_to_compute(move.entering) if move.is_due else 0
        spare = max(spare, 0)
        shares: dict[str, int] = {}
        for sequence in sorted([*ready, *entering], key=self._rank) if entering else ready:
            if sequence in entering:
                spare -= min(self._room.num_to_compute(sequence), spare)
                continue
            extra = min(self._most(sequence) - 1, spare)
            shares[sequence.id] = 1 + extra
            self._num_scored += 1 + extra if sequence.is_scored else 0
            spare -= extra
        return shares

    def _most(self, sequence: Sequence) -> int:
        """How much of it the step may compute."""
        if not sequence.is_scored:
            return sequence.num_pending
        return min(sequence.num_pending, max(1, SCORED_TOKENS - self._num_scored))

    def _ready(self, num_starting: int = 0) -> list[Sequence]:
        """The running sequences that the next step goes on with: while others wait for a slot, by their tiers."""
        ready = [sequence for sequence in self._running if self._is_ready(sequence)]
        is_full = len(self._running) + num_starting >= self.max_sequences or len(self._waiting) > num_starting
        return self._tiers.taking_part(ready) if is_full else ready

    def _is_ready(self, sequence: Sequence) -> bool:
        """Not while two of its tokens are still to be drawn, nor when the one in flight is its last."""
        has_room = sequence.num_outputs < sequence.add.sampling.max_tokens and sequence.num_tokens < sequence.max_len
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
        if not num_missing:
            return True
        tenant = sequence.claim.tenant
        while not self._room.may_extend(sequence, num_missing):
            if not self._give_up_blocks(tenant) and self._park_last(tenant) is sequence:
                return False
        while not self._room.can_extend(num_missing):
            if not self._give_up_blocks() and self._park_last() is sequence:
                return False
        self._room.extend(sequence, num_missing)
        return True

    def _park_last(self, tenant: str | None = None) -> Sequence:
        """Parks the last in the order, or the tenant's last, for its blocks."""
        sequence = next(each for each in reversed(self._running) if tenant in (None, each.claim.tenant))
        self._running.remove(sequence)
        self._room.free(sequence)
        self._waiting.append(sequence)
        self._out_of_blocks.add(tenant)
        self._is_quiet = False
        self.preemptions += 1
        return sequence

    def _give_up_blocks(self, tenant: str | None = None, *, but: Sequence | None = None) -> bool:
        """Frees the blocks that a parked sequence has kept, the last in the order first; False where none has any."""
        keeping = [
            sequence
            for sequence in self._waiting
            if sequence.block_ids and sequence is not but and tenant in (None, sequence.claim.tenant)
        ]
        if not keeping:
            return False
        self._room.free(max(keeping, key=self._rank))
        return True

    def _start(self, moves: list[Move], budget: int) -> list[Span]:
        """The first in the order that finds no blocks keeps the others waiting too: the room it needs is not theirs."""
        spans: list[Span] = []
        if None in self._out_of_blocks:
            return spans  # the next blocks are those of who has just been parked
        for sequence in (move.entering for move in moves):
            if sequence.claim.tenant in self._out_of_blocks or not self._room.is_within_share(sequence, self._waiting):
                continue
            if budget <= 0:
                break
            if not self._admit(sequence):
                self._lacked = self._lacked or sequence
                break
            self._waiting.remove(sequence)
            self._running.append(sequence)
            sequence.num_served = 0
            self._tiers.enter(sequence)
            self._is_quiet = False
            span = sequence.plan(min(self._most(sequence), budget), self.eos_ids)
            self._num_scored += len(span.token_ids) if sequence.is_scored else 0
            spans.append(span)
            budget -= len(span.token_ids)
        return spans

    def _promised(self) -> set[bytes]:
        """Hashes of the blocks that running sequences are about to have computed."""
        if not self._waiting:
            return set()
        return {block_hash for sequence in self._running for block_hash in self._room.hashes_ahead(sequence)}

    def _admit(self, sequence: Sequence) -> bool:
        """Gives a sequence blocks for all its known tokens at once, so that it is not parked half way through them."""
        if not self._room.has_for(sequence, self._waiting):
            return False
        while not self._room.admit(sequence):
            tenant = None if self._room.is_within_share(sequence) else sequence.claim.tenant
            if not self._give_up_blocks(tenant, but=sequence):
                return False
        if sequence.num_cached is None:
            sequence.num_cached = min(sequence.num_computed, len(sequence.add.prompt_ids))
            sequence.num_charged = sequence.num_computed
            self._policy.charge(sequence.claim, cached=sequence.num_computed)
        return True

    def _take_scores(self, span: Span, drawn: list[Drawn]) -> None:
        """What is known of a prompt's tokens; that it was parked meanwhile changes nothing of it."""
        sequence = self._sequences.get(span.id)
        if sequence is None or sequence.arrival != span.arrival:
            return
        assert sequence.num_scored == span.end - len(span.draws), "each token is told of once, in order"
        sequence.num_scored += len(drawn)
        self._scored.append(Scored(sequence.id, [(each.logprob or 0.0, list(each.top)) for each in drawn]))

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
        self._room.publish(sequence, span.first, end)

    def _emit(self, sequence: Sequence, drawn: Drawn) -> Emitted:
        sequence.learn(drawn.token)
        finish = finish_of(
            token=drawn.token,
            num_outputs=sequence.num_known - len(sequence.add.prompt_ids),
            num_tokens=sequence.num_known,
            sampling=sequence.add.sampling,
            eos_ids=self.eos_ids,
            max_model_len=sequence.max_len,
        )
        cached, sequence.num_cached = sequence.num_cached or 0, 0
        return Emitted(sequence.id, drawn.token, finish, drawn.logprob, list(drawn.top), cached)

    def _end(self, sequence: Sequence) -> None:
        del self._sequences[sequence.id]
        self._is_quiet = False
        (self._running if sequence in self._running else self._waiting).remove(sequence)
        self._room.free(sequence)
        self._policy.leave(sequence.claim)
