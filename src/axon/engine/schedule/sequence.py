"""A job inside the engine: its tokens and how far they are computed. Owned and changed by the scheduler alone."""

from collections import abc
from dataclasses import dataclass, field

from axon.domain.sampling import Sampling
from axon.engine.batch import PLACEHOLDER, Draw, Span
from axon.engine.protocol.messages import Add
from axon.engine.schedule.blocks import chain_hashes
from axon.engine.schedule.draft import Drafter
from axon.engine.schedule.finish import ending_ids
from axon.engine.schedule.policy import Claim


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
    """What its tenant's sequences may hold together."""
    max_len: int
    """Its prompt and its longest answer."""
    token_ids: list[int] = field(init=False)
    """Prompt and output; what steps in flight are to draw stands as placeholders at the end."""
    num_unknown: int = 0
    """Placeholders."""
    num_computed: int = 0
    """Tokens whose KV stands in the blocks once the steps in flight are done."""
    num_settled: int = 0
    """Tokens whose KV stands in the blocks."""
    num_charged: int = 0
    """Of the tokens it came with, those that the policy has been told of or that were cached."""
    num_cached: int | None = None
    """Tokens of the prompt that came from cached blocks; None until it has run, 0 once reported."""
    num_scored: int = 0
    """Tokens of its prompt, from the second on, whose logprobs are known."""
    num_admissions: int = 0
    num_served: int = 0
    """Tokens planned for it since it got its slot."""
    turn: int = 0
    """Its place among those of its tier; see ``axon.engine.schedule.tiers``."""
    block_ids: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    """Of the full blocks of token_ids, as far as asked for."""
    claim: Claim = field(init=False)
    is_scored: bool = field(init=False)
    """Whether its prompt's logprobs are asked for; they were told with its first token, where it has one."""
    drafter: Drafter = field(default_factory=Drafter)

    def __post_init__(self) -> None:
        add = self.add
        self.token_ids = [*add.prompt_ids, *add.output_ids]
        self.is_scored = add.sampling.prompt_logprobs and not add.output_ids
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

    def num_missing_blocks(self, num_tokens: int) -> int:
        """Blocks to add so that ``num_tokens`` find room."""
        return max(0, -(-num_tokens // self.block_size) - len(self.block_ids))

    def full_hashes(self, num_tokens: int) -> list[bytes]:
        """Hashes of the blocks that the first ``num_tokens`` fill, which must be known."""
        num_full = num_tokens // self.block_size
        if len(self.hashes) < num_full:
            chain_hashes(self.hashes, self.token_ids, num_full, self.block_size, salt=self.salt)
        return self.hashes[:num_full]

    def guess(self, *, price: float, most: int) -> list[int]:
        """What may come after its last token, where that is known and is all there is to compute."""
        if self.num_unknown or self.num_pending != 1:
            return []
        room = min(self.add.sampling.max_tokens - self.num_outputs, self.max_len - self.num_tokens) - 1
        return self.drafter.guess(self.token_ids, price=price, most=min(most, room))

    def plan(self, num_tokens: int, eos_ids: frozenset[int], guesses: list[int] | None = None) -> Span:
        """The next ``num_tokens`` pending tokens as work for a step, which counts as done from now on.

        Guesses at what follows them go along; whether they are right is seen when the step is settled.
        """
        first, end = self.num_computed, self.num_computed + num_tokens
        span = Span(
            id=self.id,
            first=first,
            token_ids=(*self.token_ids[first:end], *guesses) if guesses else tuple(self.token_ids[first:end]),
            block_ids=tuple(self.block_ids),
            draw=self._draw(eos_ids) if end == self.num_tokens else None,
            drafts=tuple(self._draw(eos_ids, guesses[: place + 1]) for place in range(len(guesses))) if guesses else (),
            scores=self._scores(first, end) if self.is_scored else (),
            arrival=self.arrival,
            admission=self.num_admissions,
        )
        self.num_computed = end
        self.num_served += num_tokens
        if span.draw is not None:
            self.token_ids.append(PLACEHOLDER)
            self.num_unknown += 1
        return span

    def learn(self, token: int) -> None:
        """Puts a drawn token in the place of the oldest placeholder; one that was guessed right has none."""
        if self.num_unknown:
            self.token_ids[self.num_known] = token
            self.num_unknown -= 1
        else:
            self.token_ids.append(token)

    def _scores(self, first: int, end: int) -> tuple[Draw, ...]:
        """What is asked behind tokens of the prompt; with its answer begun, all of it was asked before."""
        num_prompt = len(self.add.prompt_ids)
        if end > num_prompt:
            return ()
        sampling = Sampling(max_tokens=1, temperature=0.0, logprobs=self.add.sampling.logprobs)
        places = range(max(first, self.num_scored), min(end, num_prompt - 1))
        return tuple(
            Draw(sampling=sampling, seed=0, choice=0, position=0, given=self.token_ids[place + 1]) for place in places
        )

    def _draw(self, eos_ids: frozenset[int], guesses: abc.Sequence[int] = ()) -> Draw:
        """What is drawn behind the last token, or behind guesses at what follows it."""
        sampling, position = self.add.sampling, self.num_outputs + len(guesses)
        return Draw(
            sampling=sampling,
            seed=self.add.seed,
            choice=self.add.choice,
            position=position,
            prompt_ids=tuple(self.add.prompt_ids) if sampling.penalises_prompt else (),
            output_ids=(*self.token_ids[len(self.add.prompt_ids) :], *guesses) if sampling.penalises_output else (),
            banned_ids=ending_ids(sampling, eos_ids) if position < sampling.min_tokens else (),
        )
