"""Decides which tokens the next step computes and takes in what it produced. No tensors, no I/O, no clock.

There are no phases: every sequence lets its computed tokens catch up with its known tokens under one token budget a
step. A prefill chunk, a decode and a recompute after parking are the same thing.

A step may be planned before the one before it is settled: ``schedule, schedule, settle, schedule, settle …`` is as
good as ``schedule, settle, schedule, settle …``. The later step then holds placeholders for the tokens that the earlier
one draws (the runner fills them in, see ``batch.fill``). Steps run and are settled in the order of their planning.
"""

from collections.abc import Iterable
from itertools import chain, count

from axon.domain.failure import Failure
from axon.engine.batch import Batch, Drawn, Span
from axon.engine.constraint import Matcher
from axon.engine.copies import Copies
from axon.engine.drafts import Drafted
from axon.engine.protocol.messages import Add, Emitted, Refused, Scored
from axon.engine.schedule.allocation import Allocation
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.budget import TokenBudget
from axon.engine.schedule.drafting import Drafting
from axon.engine.schedule.head_wait import HeadWait
from axon.engine.schedule.limits.controller import ExpectedDrafts, Outlook, StepLimits
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.policy import Fair, Policy, Rank
from axon.engine.schedule.roster import Roster
from axon.engine.schedule.scoring import MAX_SCORED_TOKENS
from axon.engine.schedule.sequence import Sequence, salt_of
from axon.engine.schedule.sequence_limits import SequenceLimits
from axon.engine.schedule.shelf import Shelf
from axon.engine.schedule.slot_queue import Grant, SlotQueue, rank_of
from axon.engine.schedule.tiers import Tiers


class Scheduler:
    """Owns the sequences; the policy orders them."""

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
        max_scored_tokens: int = MAX_SCORED_TOKENS,
        shelf: Shelf | None = None,
        max_draft_len: int = 0,
        has_head: bool = False,
    ) -> None:
        """``max_scored_tokens``: most prompt tokens whose log probabilities a step computes. ``max_draft_len``: most
        tokens that the draft model attends to; 0 without one. ``has_head``: it is a head of the model."""
        self.pool, self.shelf = pool, shelf
        self.max_batch_tokens = max_batch_tokens
        self.max_prefill_tokens = max_prefill_tokens or max_batch_tokens
        self._max_scored_tokens = max_scored_tokens
        # Every running sequence gets a token each step, and each fits into the pool alone: so none waits for ever.
        self.max_sequences = min(max_sequences, max_batch_tokens)
        self.max_model_len = min(max_model_len, pool.num_blocks * pool.block_size)
        self.eos_ids = eos_ids
        self.preemptions = 0
        """Sequences parked since the start because blocks ran out, the pool's or their tenant's."""
        self.yielded = 0
        """Sequences parked since the start because their slot was due to another tenant or a higher priority."""
        self._policy = policy or Fair()
        self._allocation = Allocation(pool, shelf)
        self.drafting = Drafting(self._allocation, eos_ids=eos_ids, max_draft_len=max_draft_len, has_head=has_head)
        self._sequence_limits = SequenceLimits(
            max_model_len=self.max_model_len, num_blocks=pool.num_blocks, block_size=pool.block_size
        )
        self._version, self._arrivals = version, count()
        self._tiers, self._roster = Tiers(), Roster()
        self._refused: list[Refused] = []
        self._scored: list[Scored] = []
        self._out_of_blocks: set[str | None] = set()
        """Tenants that had a sequence parked in this step for their share of blocks; None: one parked for the pool."""
        self._head_wait = HeadWait()

    @property
    def num_running(self) -> int:
        return len(self._roster.running)

    @property
    def num_waiting(self) -> int:
        return len(self._roster.waiting)

    @property
    def running_by_priority(self) -> dict[int, int]:
        return self._roster.running_by_priority()

    @property
    def waiting_ids(self) -> list[str]:
        return [sequence.id for sequence in self._roster.waiting]

    @property
    def adapters(self) -> set[str]:
        """The adapters that its sequences are computed with."""
        return {sequence.add.adapter for sequence in self._roster.by_id.values()} - {""}

    @property
    def has_work(self) -> bool:
        return bool(self._roster.by_id or self._refused or (self.shelf and self.shelf.has_saves))

    @property
    def has_prompts(self) -> bool:
        """Whether the next step may compute prompt tokens, not only the next tokens of streams."""
        return bool(self._roster.waiting) or any(sequence.num_pending > 1 for sequence in self._roster.running)

    def outlook(self) -> Outlook:
        """The streams of the next step, and the position of the prompt that would be prefilled beside them."""
        ready = self._ready()
        streams = [sequence.num_tokens for sequence in ready if sequence.num_pending == 1]
        prompts = [sequence.num_computed for sequence in ready if sequence.num_pending > 1]
        everyone = chain(self._roster.running, self._roster.waiting)
        num_interrupted = sum(sequence.num_pending for sequence in everyone if sequence.stands_still)
        return Outlook(len(streams), sum(streams), prompts[0] if prompts else 0, num_interrupted)

    def expected_lookups(self, price: float) -> ExpectedDrafts:
        """What drafts out of the streams' own texts would bring in the next step."""
        return self.drafting.expected_lookups(self._streams(), price)

    def would_ask(self, costs: DraftCosts) -> bool:
        """Whether the draft model would be asked for anything in the next step."""
        return self.drafting.would_ask(self._streams(), costs)

    def _streams(self) -> list[Sequence]:
        return [each for each in self._roster.running if each.can_continue and each.num_pending == 1]

    def add(self, add: Add, matcher: Matcher | None = None) -> None:
        """Queues a sequence or refuses it; an id that is known already starts over.

        ``matcher`` is that of its grammar, behind the tokens it came with.
        """
        self.abort([add.id])
        if refusal := self._sequence_limits.refusal(add):
            self._refused.append(refusal)
            return
        arrival, limits = next(self._arrivals), self._sequence_limits
        salt = salt_of(add, self._version, arrival)
        sequence = Sequence(
            add, arrival, self.pool.block_size, salt, limits.max_blocks(add), limits.max_len(add), matcher
        )
        self._policy.arrive(sequence.claim, {waiting.claim.tenant for waiting in self._roster.waiting})
        self._roster.arrive(sequence)

    def abort(self, ids: Iterable[str]) -> None:
        """Forgets sequences and frees their blocks; unknown ids are ignored."""
        for id in ids:
            if id in self._roster.by_id:
                self._end(self._roster.by_id[id])

    def erase(self, sessions: Iterable[str]) -> None:
        """Erases the copies of blocks of these sessions."""
        self._allocation.erase(sessions)

    def schedule(self, now: float = 0.0, limits: StepLimits | None = None) -> Batch:
        """Plans a step: the running sequences first, then as many waiting ones as slots, budget and blocks allow.

        ``now`` is Unix time in seconds; without ``limits`` prompts get ``max_prefill_tokens`` and nothing is drafted.
        """
        limits = limits or StepLimits(max_prefill_tokens=self.max_prefill_tokens)
        budget = TokenBudget(self.max_batch_tokens, limits, max_scored_tokens=self._max_scored_tokens)
        self._expire(now)
        self._allocation.take_news(now)
        grants = self._grant_slots(budget)
        self._roster.running.sort(key=self._rank)
        self._out_of_blocks.clear()
        spans = self._plan_running(grants, budget)
        spans += self._start(grants, budget, budget.left_after(spans))
        self._tiers.next_step()
        return Batch(tuple(spans), self._allocation.plan_copies(self._roster.running))

    def add_drafts(self, batch: Batch, drafted: Drafted) -> Batch:
        """The planned batch with the drafts of the draft model."""
        return self.drafting.add(batch, drafted, self._roster.of_span, self.max_batch_tokens - batch.num_tokens)

    def settle(self, batch: Batch, drawn: list[Drawn]) -> list[Emitted]:
        """Takes in a step's results, one for each draw of the batch in order; returns the new tokens."""
        if batch.copies is not None:
            self._settle_copies(batch.copies)
        results = iter(drawn)
        emitted: list[Emitted] = []
        for span in batch.spans:
            scores, tokens = span.take_results(results)
            sequence = self._roster.of_span(span)
            if sequence is None:
                continue
            if scores and sequence.scores is not None:
                self._scored.append(sequence.scores.take(span, scores))
            if not tokens:
                self._advance(sequence, span, span.end, 0)
            elif sequence.matcher is not None and not (tokens := list(span.allowed(tokens))):
                self.refuse(sequence.id, Failure.INVALID, f"The grammar cannot be followed: {sequence.matcher.problem}")
            elif not span.drafts:
                emitted.append(sequence.emit(tokens[0], self.eos_ids))
                self._advance(sequence, span, span.end, 1)
                if emitted[-1].finish:
                    self._end(sequence)
            else:
                emitted += self._settle_drafts(sequence, span, tokens)
        return emitted

    def refuse(self, id: str, code: str, message: str) -> None:
        """Forgets a sequence, if it is known, and reports why it is not run."""
        self.abort([id])
        self._refused.append(Refused(id, code, message))

    def take_refused(self) -> list[Refused]:
        """The sequences refused since the last call."""
        refused, self._refused = self._refused, []
        return refused

    def take_scored(self) -> list[Scored]:
        """The log probabilities of prompt tokens that have become known since the last call."""
        scored, self._scored = self._scored, []
        return scored

    def check(self) -> None:
        """Proves that no block leaked and that every sequence is in exactly one place; raises AssertionError."""
        everyone = [*self._roster.running, *self._roster.waiting]
        self._allocation.check(everyone)
        assert len(self._roster.running) <= self.max_sequences, "more sequences run than there are slots"
        self._roster.check()

    def _expire(self, now: float) -> None:
        for sequence in list(self._roster.by_id.values()):
            if sequence.add.deadline is not None and sequence.add.deadline <= now:
                self.refuse(sequence.id, "deadline_exceeded", "The deadline has passed.")

    def _rank(self, sequence: Sequence) -> Rank:
        return rank_of(sequence, self._policy)

    def _grant_slots(self, budget: TokenBudget) -> list[Grant]:
        """The slots of waiting sequences that are to start now, in order; sequences that yield a slot are parked."""
        running, waiting = self._roster.running, self._roster.waiting
        if not waiting or (self._roster.is_stable and len(running) >= self.max_sequences):
            return []
        queue = SlotQueue(self.max_sequences, self._policy, running=running, waiting=waiting)
        if self._head_wait.waits(queue) or not self._allocation.could_admit(queue.head, waiting):
            self._head_wait.hold(queue)  # nobody overtakes it, not even once there are enough blocks at last
        num_tokens = budget.for_starting(running)
        promised = self._allocation.promised(running)
        grants: list[Grant] = []
        while num_tokens > 0 and (grant := queue.next_grant()):
            sequence = grant.entering
            # Parked with a token in flight, or about to find its next block computed by another: a matter of steps.
            is_soon = sequence.num_unknown or self._allocation.next_hash(sequence) in promised
            if is_soon or not self._allocation.is_within_share(sequence, waiting):
                queue.skip(grant)
                continue
            if grant.yielding is not None:
                if not self._allocation.could_admit(sequence, [*waiting, grant.yielding]):
                    return grants
                # It keeps its blocks: while nobody else needs them, resuming it costs nothing.
                self._roster.park(grant.yielding)
                self.yielded += 1
            queue.accept(grant)
            grants.append(grant)
            promised.update(self._allocation.hashes_ahead(sequence))
            num_tokens -= self._allocation.num_to_compute(sequence)
        # With no tokens left nobody was asked: a later step may find a slot that is due.
        self._roster.is_stable = num_tokens > 0 and queue.is_stable and not grants
        return grants

    def _plan_running(self, grants: list[Grant], budget: TokenBudget) -> list[Span]:
        """Plans in the policy's order and parks from its end: a sequence with a span is not parked in the same step."""
        ready = self._ready(num_starting=len(grants))
        shares = budget.shares(ready, grants, rank=self._rank, num_to_compute=self._allocation.num_to_compute)
        index = 0
        while index < len(self._roster.running):
            sequence = self._roster.running[index]
            if self._extend(sequence, sequence.num_computed + shares.get(sequence.id, 0)):
                index += 1
        running = [(sequence, share) for sequence in self._roster.running if (share := shares.get(sequence.id, 0))]
        spare = self.max_batch_tokens - sum(shares.values())
        return self.drafting.plan(running, budget.limits, spare)

    def _ready(self, num_starting: int = 0) -> list[Sequence]:
        """The running sequences that take part in the next step: when slots are short, by their tiers."""
        ready = [sequence for sequence in self._roster.running if sequence.can_continue]
        num_running, num_waiting = len(self._roster.running), len(self._roster.waiting)
        is_full = num_running + num_starting >= self.max_sequences or num_waiting > num_starting
        return self._tiers.taking_part(ready) if is_full else ready

    def _extend(self, sequence: Sequence, num_tokens: int) -> bool:
        """Extends the sequence's blocks to ``num_tokens``; False if it was itself the last in order and was parked."""
        num_missing = sequence.num_missing_blocks(num_tokens)
        if not num_missing:
            return True
        tenant = sequence.claim.tenant
        while not self._allocation.may_extend(sequence, num_missing):
            if not self._free_kept_blocks(tenant) and self._preempt_last(tenant) is sequence:
                return False
        while not self._allocation.can_extend(num_missing):
            if not self._free_kept_blocks() and self._preempt_last() is sequence:
                return False
        self._allocation.extend(sequence, num_missing)
        return True

    def _preempt_last(self, tenant: str | None = None) -> Sequence:
        """Parks the last in order, of the tenant or of all, and frees its blocks."""
        sequence = self._roster.last_running(tenant)
        self._roster.park(sequence)
        self._allocation.free(sequence)
        self._out_of_blocks.add(tenant)
        self.preemptions += 1
        return sequence

    def _free_kept_blocks(self, tenant: str | None = None, *, but: Sequence | None = None) -> bool:
        """Frees the blocks that the last parked sequence in order has kept; False if none has any."""
        keeping = self._roster.keeping_blocks(tenant, but=but)
        if not keeping:
            return False
        self._allocation.free(max(keeping, key=self._rank))
        return True

    def _start(self, grants: list[Grant], budget: TokenBudget, num_tokens: int) -> list[Span]:
        """Starts sequences in order; the first that finds no blocks stops those behind it, who must not take them."""
        spans: list[Span] = []
        if None in self._out_of_blocks:
            return spans  # the next free blocks belong to the sequence that was just parked
        for sequence in (grant.entering for grant in grants):
            if sequence.claim.tenant in self._out_of_blocks:
                continue
            if not self._allocation.is_within_share(sequence, self._roster.waiting):
                continue
            if num_tokens <= 0:
                break
            if not self._admit(sequence):
                self._head_wait.lacks_blocks(sequence)
                break
            self._roster.start(sequence)
            sequence.num_served = 0
            self._tiers.enter(sequence)
            if sequence.is_loading:
                continue
            span = sequence.plan(min(budget.most_of(sequence), num_tokens), self.eos_ids)
            budget.count_scored(sequence, len(span.token_ids))
            spans.append(span)
            num_tokens -= len(span.token_ids)
        return spans

    def _admit(self, sequence: Sequence) -> bool:
        """Gives a sequence blocks for all its known tokens at once, so that it is not parked half way through them."""
        if not self._allocation.could_admit(sequence, self._roster.waiting):
            return False
        while not self._allocation.admit(sequence):
            tenant = None if self._allocation.is_within_share(sequence) else sequence.claim.tenant
            if not self._free_kept_blocks(tenant, but=sequence):
                return False
        if sequence.num_cached is None:
            sequence.num_cached = 0
            self._policy.charge(sequence.claim, cached=sequence.credit(sequence.num_computed))
        return True

    def _settle_drafts(self, sequence: Sequence, span: Span, drawn: list[Drawn]) -> list[Emitted]:
        """Emits up to the first wrong draft or the end: what was drawn behind either is discarded."""
        num_accepted = self.drafting.settle(sequence, span, drawn)
        emitted: list[Emitted] = []
        for each in drawn[: num_accepted + 1]:
            emitted.append(sequence.emit(each, self.eos_ids))
            if emitted[-1].finish:
                break
        # The last token drawn is not computed yet; the accepted drafts are.
        self._advance(sequence, span, span.end - len(span.drafts) + len(emitted) - 1, len(emitted))
        if emitted[-1].finish:
            self._end(sequence)
        return emitted

    def _advance(self, sequence: Sequence, span: Span, end: int, num_emitted: int) -> None:
        """Counts a span as computed up to ``end``; its full blocks can be found from now on, output tokens included."""
        prefilled = max(0, min(end, sequence.num_given) - sequence.num_charged)
        sequence.num_charged += prefilled
        self._policy.charge(sequence.claim, prefilled=prefilled, emitted=num_emitted)
        if not sequence.block_ids or span.admission != sequence.num_admissions:
            return  # parked since: the blocks may be another sequence's
        sequence.num_settled = end
        sequence.num_computed = max(sequence.num_computed, end)
        self._allocation.publish(sequence, span.first, end)

    def _settle_copies(self, copies: Copies) -> None:
        """Blocks that came from the shelf count as cached, and can be found from now on."""
        for load in copies.loads:
            if (sequence := self._roster.of_span(load)) is not None:
                self._policy.charge(sequence.claim, cached=self._allocation.settle_load(sequence, load))
        self._allocation.settle_copies(copies)

    def _end(self, sequence: Sequence) -> None:
        self._roster.leave(sequence)
        self._allocation.free(sequence)
        self._policy.leave(sequence.claim)
