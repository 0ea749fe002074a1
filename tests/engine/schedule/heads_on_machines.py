"""A draft head or model on machines that do not exist: the real scheduler and controller, in simulated time. No
assertions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random

from axon.engine.drafts import NOTHING_DRAFTED, DraftAsk, Drafted, DraftRound
from axon.engine.schedule.limits.device_drafts import DeviceDrafts
from axon.engine.schedule.limits.feedback_controller import FeedbackController
from axon.engine.schedule.limits.learned_controller import LearnedController
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.engine.schedule.machines import Day, Machine, drawn_at

_VOCABULARY = 1 << 20
"""So many tokens that none comes twice, and lookup finds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a head costs on a machine, and how often it is right."""

    round_s: float
    row_s: float
    rate: float
    """Probability that a guess is right if those before it were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many streams at once, each new one as soon as one ends, for so many steps."""

    streams: int
    steps: int
    tokens: int = 200
    """Tokens of each answer."""
    prompt: int = 40


@dataclass
class Told:
    """What was seen of a span."""

    seconds: float = 0.0
    """Time of its steps, with the head's."""
    plain_s: float = 0.0
    """Time that the same tokens would have taken without drafts, with the same delays."""
    head_s: float = 0.0
    tokens: int = 0
    num_drafted: int = 0
    unasked: int = 0
    """Tokens since the head was last asked for drafts, or since the load began."""
    longest: int = 0
    """Most tokens between two asks."""

    @property
    def speed(self) -> float:
        return self.plain_s / self.seconds


class Stand:
    """A scheduler and a controller on a machine with a head, over several spans."""

    def __init__(
        self, machine: Machine, day: Day, head: Head, *, draft_streams: float = 2, seed: int = 0, wait_s: float = 0.0
    ) -> None:
        """``wait_s``: what a device waits for the plan of a step that may have drafts; then ``head`` is a model of its
        own beside the target, as on a GPU."""
        self.controller: FeedbackController | LearnedController = (
            FeedbackController(max_prefill_tokens=512, slo_s=inf, drafts=DeviceDrafts(draft_tokens=4))
            if wait_s
            else LearnedController(
                max_prefill_tokens=128, max_slowdown=2.0, drafts=True, draft_tokens=4, draft_streams=draft_streams
            )
        )
        self._wait_s = wait_s
        self.head = head
        self._machine, self._day, self._factors, self._numbers = machine, day, day.factors(), Random(seed)
        self._scheduler = make_scheduler(
            blocks=8_000,
            block_size=16,
            max_sequences=32,
            max_batch_tokens=512,
            max_model_len=4096,
            max_draft_len=4096,
            has_head=not wait_s,
        )
        self._num_added = 0

    def run(self, span: Load) -> Told:
        """Serves the load; streams of the one before it have gone."""
        told = Told()
        self._scheduler.abort([str(number) for number in range(self._num_added + 1)])
        for _ in range(span.steps):
            while self._scheduler.num_running + self._scheduler.num_waiting < span.streams:
                self._num_added += 1
                id = str(self._num_added)
                prompt = [_token(id, place) for place in range(span.prompt)]
                self._scheduler.add(make_add(id, prompt=prompt, max_tokens=span.tokens, ignore_eos=True, tenant=id))
            self._step(told)
        return told

    def _step(self, told: Told) -> None:
        scheduler = self._scheduler
        limits = self.controller.limits(scheduler)
        batch = scheduler.schedule(0.0, limits)
        chance, slow = next(self._factors)
        factor = chance * slow
        plain = batch
        drafted = NOTHING_DRAFTED
        if scheduler.drafting.asks:
            drafted = self._draft(scheduler.drafting.asks, slow)
            batch = scheduler.add_drafts(batch, drafted)
            if any(ask.num_drafts for ask in scheduler.drafting.asks):
                told.unasked = 0
        wait_s = self._wait_s if limits.has_drafts else 0.0
        step_s = self._machine.step_s(batch) * factor + wait_s
        drawn = [_token(span.id, place) for span in batch.spans for place in drawn_at(span)]
        emitted = scheduler.settle(batch, make_drawn(*drawn))
        accepted, others = scheduler.drafting.take_accepted(), scheduler.drafting.take_looked_up()
        drafted = replace(drafted, num_accepted=accepted, num_looked_up=others, wait_s=wait_s)
        self.controller.observe(batch, step_s=step_s, compute_s=step_s, drafted=drafted)
        num_streams = sum(span.is_stream for span in plain.spans)
        plain_s = self._machine.step_s(plain) * factor
        told.seconds += step_s + drafted.seconds
        told.head_s += drafted.seconds
        told.plain_s += plain_s * (1 + accepted / num_streams) if num_streams else plain_s
        told.num_drafted += sum(len(span.drafts) for span in batch.spans)
        told.tokens += len(emitted)
        told.unasked += len(emitted)
        told.longest = max(told.longest, told.unasked)

    def _draft(self, asks: Sequence[DraftAsk], slow: float) -> Drafted:
        by_id = {ask.id: self._guess(ask) for ask in asks}
        num_rounds = max(1, max(ask.num_drafts for ask in asks))
        sizes = [sum(len(ask.token_ids) for ask in asks)]
        sizes += [sum(ask.num_drafts > each for ask in asks) for each in range(1, num_rounds)]
        attended = sum(ask.end for ask in asks) // len(asks)
        rounds = [
            DraftRound(
                num_tokens=size,
                num_attended=size * attended,
                seconds=(self.head.round_s + self.head.row_s * size) * slow * self._day.chance(self._numbers),
            )
            for size in sizes
        ]
        return Drafted(by_id=by_id, rounds=tuple(rounds), is_probe=all(ask.is_probe for ask in asks))

    def _guess(self, ask: DraftAsk) -> list[int]:
        tokens = [_token(ask.id, ask.end + each) for each in range(ask.num_drafts)]
        return [each if self._numbers.random() < self.head.rate else each + 1 for each in tokens]


def _token(id: str, place: int) -> int:
    """The token at a position of a stream, the same every time."""
    return hash((int(id), place)) % _VOCABULARY
