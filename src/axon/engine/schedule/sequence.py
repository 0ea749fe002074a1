"""A job inside the engine: its tokens and how far they are computed. Owned and changed by the scheduler alone."""

from collections import abc
from dataclasses import dataclass, field
from enum import StrEnum

from axon.engine.batch import PLACEHOLDER, Draw, Drawn, Span
from axon.engine.constraint import Masks, Matcher
from axon.engine.protocol.messages import Add, Emitted
from axon.engine.schedule.blocks import chain_hashes, tag_of
from axon.engine.schedule.draft import Drafter
from axon.engine.schedule.finish import ending_ids, finish_of, masked_ids
from axon.engine.schedule.limits.acceptance import Acceptance
from axon.engine.schedule.policy import Claim
from axon.engine.schedule.scoring import PromptScores, scores_of

_FORCED_RATE = 0.95
"""Share of the tokens forced by a grammar that are drawn so: the rest of a token may be cut otherwise."""
_MOST_FORCED = 16
"""Most forced tokens of a sequence that are drafted in one step."""
_LEAST_LEFT = 32
"""Tokens for which an answer is expected to go on at least, if its limit allows."""
_MODEL_STRENGTH = 8.0
"""Tried drafts of a sequence that weigh as much as what is known of all sequences."""
_FORGET = 0.95
"""Factor on what is known of the draft model's drafts of a sequence with each step that has some."""


class Source(StrEnum):
    """Where draft tokens come from."""

    LOOKUP = "lookup"
    """The sequence's own text, see ``schedule.draft``."""
    GRAMMAR = "grammar"
    """The only tokens that its grammar allows."""
    MODEL = "model"
    """The draft model, see ``engine.draft_model``."""


@dataclass(slots=True, eq=False)
class Sequence:
    """Counters and lists only; everything else is derived from them.

    |<- num_settled ->|<- steps in flight ->|<- num_pending ->|
    |<---------- num_computed ------------->|
    |<----------------------- token_ids --------------------->|
    """

    add: Add
    arrival: int
    block_size: int
    salt: str
    max_blocks: int
    """Most blocks that all sequences of its tenant may hold together."""
    max_len: int
    """Most tokens of its prompt and its answer together."""
    matcher: Matcher | None = None
    """Where it stands in its grammar; None if its sampling has none."""
    token_ids: list[int] = field(init=False)
    """Prompt and output; the tokens that steps in flight will draw stand as placeholders at the end."""
    num_unknown: int = 0
    """Placeholders in ``token_ids``."""
    num_computed: int = 0
    """Tokens whose KV stands in the blocks once the steps in flight are done."""
    num_settled: int = 0
    """Tokens whose KV stands in the blocks."""
    num_to_load: int = 0
    """Tokens at its start whose blocks come from the shelf instead of being computed; 0 for none."""
    load_asked_at: float = 0.0
    """Unix time of the step that has asked for the block that it waits for; 0 while it waits for none."""
    num_charged: int = 0
    """Tokens of those it came with that were charged to its tenant or found in the cache."""
    num_cached: int | None = None
    """Prompt tokens that came from cached blocks; None until it has run, 0 once reported."""
    num_admissions: int = 0
    """Number of times that it was given blocks."""
    num_served: int = 0
    """Tokens planned for it since it got its slot."""
    tier_offset: int = 0
    """Shifts the steps in which it takes part against those of others of its tier; see ``schedule.tiers``."""
    block_ids: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    """Hashes of the full blocks of ``token_ids``, as far as they were asked for."""
    claim: Claim = field(init=False)
    scores: PromptScores | None = field(init=False)
    """Log probabilities of its prompt; None where they are not asked for."""
    drafter: Drafter = field(default_factory=Drafter)
    draft_source: Source = Source.LOOKUP
    """Where its latest draft tokens came from."""
    num_seen: int = 0
    """Tokens whose KV the draft model has, see ``schedule.draft_blocks``."""
    model_acceptance: Acceptance = field(default_factory=lambda: Acceptance(strength=_MODEL_STRENGTH))
    """How often the draft model's drafts were right."""
    tag: bytes = field(init=False)
    """Its session's, by which its blocks on the shelf are erased; none without a session."""
    penalised_prompt: tuple[int, ...] = field(init=False)
    """The prompt, if its sampling penalises it: one object for all draws, so that a sampler can know it again."""

    def __post_init__(self) -> None:
        add = self.add
        self.token_ids = [*add.prompt_ids, *add.output_ids]
        self.scores = scores_of(add)
        self.tag = tag_of(add.session)
        self.penalised_prompt = tuple(add.prompt_ids) if add.sampling.penalises_prompt else ()
        self.claim = Claim(
            arrival=self.arrival,
            tenant=add.tenant,
            weight=add.weight,
            reserved=add.reserved,
            priority=add.priority,
        )

    @property
    def id(self) -> str:
        return self.add.id

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def num_known(self) -> int:
        return len(self.token_ids) - self.num_unknown

    @property
    def num_given(self) -> int:
        """Tokens it came with."""
        return len(self.add.prompt_ids) + len(self.add.output_ids)

    @property
    def num_outputs(self) -> int:
        return len(self.token_ids) - len(self.add.prompt_ids)

    @property
    def num_pending(self) -> int:
        """Tokens still to compute."""
        return len(self.token_ids) - self.num_computed

    @property
    def stands_still(self) -> bool:
        """Whether it was interrupted in its answer, and has not yet computed again what it came with.

        Once it was parked for want of blocks it waits like any other: it must not take them from others again and
        again.
        """
        return self.add.interrupted and self.num_computed < self.num_given and self.num_admissions <= 1

    @property
    def may_be_shelved(self) -> bool:
        """Whether its blocks may be copied to the shelf: not those of a prompt that is scored, which nobody finds."""
        return self.scores is None and not self.add.forget

    @property
    def is_loading(self) -> bool:
        """Whether its next block comes from the shelf."""
        return self.num_computed < self.num_to_load

    @property
    def can_continue(self) -> bool:
        """False while blocks come from the shelf or two of its tokens are still to be drawn, and once the token in
        flight is its last."""
        is_open = self.num_outputs < self.add.sampling.max_tokens and self.num_tokens < self.max_len
        return is_open and self.num_unknown < 2 and not self.is_loading

    def num_missing_blocks(self, num_tokens: int) -> int:
        """Blocks to add so that ``num_tokens`` tokens fit."""
        return max(0, -(-num_tokens // self.block_size) - len(self.block_ids))

    def full_hashes(self, num_tokens: int) -> list[bytes]:
        """Hashes of the blocks that the first ``num_tokens`` tokens fill, all of which must be known."""
        num_full = num_tokens // self.block_size
        if len(self.hashes) < num_full:
            chain_hashes(self.hashes, self.token_ids, num_full, self.block_size, salt=self.salt)
        return self.hashes[:num_full]

    @property
    def may_draft(self) -> bool:
        """Whether its last token is known and alone to compute: drafts can stand behind it."""
        return not self.num_unknown and self.num_pending == 1

    @property
    def num_left(self) -> int:
        """The most tokens that its answer may still have."""
        return min(self.add.sampling.max_tokens - self.num_outputs, self.max_len - self.num_tokens)

    @property
    def num_expected(self) -> int:
        """Tokens for which its answer is expected to go on: as many as it has, since nobody knows."""
        return min(self.num_left, max(_LEAST_LEFT, self.num_outputs))

    def draft(self, *, price: float, most: int, least_match: int = 0) -> list[int]:
        """Draft tokens behind its last token, out of its own text and grammar; none unless it may have drafts.
        ``least_match``: see ``Drafter.draft``."""
        if not self.may_draft:
            return []
        most = min(most, self.num_left - 1)
        self.draft_source = Source.LOOKUP
        if self.matcher is None:
            return self.drafter.draft(self.token_ids, price=price, most=most, least_match=least_match)
        forced = self.matcher.forced()[: max(0, min(most, _MOST_FORCED))] if price < _FORCED_RATE else []
        if forced:
            self.draft_source = Source.GRAMMAR
            return forced
        found = self.drafter.draft(self.token_ids, price=price, most=most, least_match=least_match, follows=False)
        return self.matcher.legal(found)

    def follow_drafts(self) -> float:
        """How likely the next guess out of its text would be right; 0 without one. Drafts nothing."""
        return self.drafter.follow(self.token_ids, self.num_known) if self.matcher is None else 0.0

    def credit(self, end: int) -> int:
        """Counts tokens that came from the cache up to ``end``; returns how many of them were not counted before."""
        credited = max(0, min(end, self.num_given) - self.num_charged)
        if self.num_cached is not None:
            num_prompt = len(self.add.prompt_ids)
            self.num_cached += min(self.num_charged + credited, num_prompt) - min(self.num_charged, num_prompt)
        self.num_charged += credited
        return credited

    def learn_drafts(self, *, num_drafted: int, num_accepted: int) -> None:
        """Takes in how many drafts were accepted; those that its grammar forced say nothing about others."""
        if self.draft_source is Source.LOOKUP:
            self.drafter.learn(num_drafted=num_drafted, num_accepted=num_accepted)
        elif self.draft_source is Source.MODEL:
            self.model_acceptance.forget(_FORGET)
            self.model_acceptance.learn(num_drafted=num_drafted, num_accepted=num_accepted)

    def plan(self, num_tokens: int, eos_ids: frozenset[int], drafts: list[int] | None = None) -> Span:
        """The next ``num_tokens`` pending tokens as work for a step; they count as computed from now on.

        Draft tokens are computed behind them; whether these are accepted is known when the step is settled.
        """
        first, end = self.num_computed, self.num_computed + num_tokens
        masks = self._masks(drafts or ()) if end == self.num_tokens else None
        span = Span(
            id=self.id,
            first=first,
            token_ids=(*self.token_ids[first:end], *drafts) if drafts else tuple(self.token_ids[first:end]),
            block_ids=tuple(self.block_ids),
            draw=self._draw(eos_ids, masks) if end == self.num_tokens else None,
            drafts=tuple(self._draw(eos_ids, masks, drafts[: index + 1]) for index in range(len(drafts)))
            if drafts
            else (),
            scores=self.scores.draws(first, end) if self.scores is not None else (),
            arrival=self.arrival,
            admission=self.num_admissions,
            adapter=self.add.adapter,
        )
        self.num_computed = end
        self.num_served += num_tokens
        if span.draw is not None:
            self.token_ids.append(PLACEHOLDER)
            self.num_unknown += 1
        return span

    def replan(self, span: Span, eos_ids: frozenset[int], drafts: list[int]) -> Span:
        """Plans its latest span again, with draft tokens that were not known before."""
        self.token_ids.pop()
        self.num_unknown -= 1
        self.num_computed = span.first
        self.num_served -= len(span.token_ids)
        return self.plan(len(span.token_ids), eos_ids, drafts)

    def emit(self, drawn: Drawn, eos_ids: frozenset[int]) -> Emitted:
        """Takes in a drawn token and says whether the sequence ends with it."""
        self._learn(drawn.token)
        if self.matcher is not None:
            self.matcher.learn(self.num_known - len(self.add.prompt_ids) - 1, drawn.token)
        finish = finish_of(
            token=drawn.token,
            num_outputs=self.num_known - len(self.add.prompt_ids),
            num_tokens=self.num_known,
            sampling=self.add.sampling,
            eos_ids=eos_ids if self.matcher is None else self.matcher.eos_ids,
            max_len=self.max_len,
        )
        cached, self.num_cached = self.num_cached or 0, 0
        return Emitted(self.id, drawn.token, finish, drawn.logprob, list(drawn.top), cached)

    def _learn(self, token: int) -> None:
        """Puts a drawn token in the place of the oldest placeholder; behind an accepted draft there is none."""
        if self.num_unknown:
            self.token_ids[self.num_known] = token
            self.num_unknown -= 1
        else:
            self.token_ids.append(token)

    def _masks(self, drafts: abc.Sequence[int]) -> Masks | None:
        """The masks of the draws behind the last token and behind the draft tokens that follow it."""
        if self.matcher is None:
            return None
        positions = range(self.num_outputs, self.num_outputs + len(drafts) + 1)
        banned = [masked_ids(self.add.sampling, self.matcher.eos_ids, position) for position in positions]
        return self.matcher.masks(self.num_outputs, drafts, banned)

    def _draw(self, eos_ids: frozenset[int], masks: Masks | None, drafts: abc.Sequence[int] = ()) -> Draw:
        """The draw behind the last token, or behind draft tokens that follow it."""
        sampling, position = self.add.sampling, self.num_outputs + len(drafts)
        return Draw(
            sampling=sampling,
            seed=self.add.seed,
            choice=self.add.choice,
            position=position,
            prompt_ids=self.penalised_prompt,
            output_ids=(*self.token_ids[len(self.add.prompt_ids) :], *drafts) if sampling.penalises_output else (),
            banned_ids=ending_ids(sampling, eos_ids) if position < sampling.min_tokens and masks is None else (),
            mask=masks.of(len(drafts)) if masks is not None else None,
        )


def salt_of(add: Add, version: str, arrival: int) -> str:
    """What the hashes of a sequence's blocks begin with, so that only those find them that may: the same tenant's, of
    the same version and adapter. A cached block has no log probabilities, so a prompt that is scored finds none."""
    adapter = f"\0adapter {add.adapter}" if add.adapter else ""
    own = f"\0{arrival}" if add.sampling.prompt_logprobs else ""
    return f"{version}\0{add.tenant}{adapter}{own}"
