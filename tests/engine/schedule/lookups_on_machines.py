"""Answers that repeat themselves, on machines that do not exist: the real scheduler and controller, in simulated time.
No assertions."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from axon.engine.batch import Span
from axon.engine.drafts import Drafted
from axon.engine.schedule.limits.learned_controller import LearnedController
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.engine.schedule.machines import Day, Machine

_VOCABULARY = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Looping:
    """Streams that come at once, each with a prompt that never repeats itself and an answer that soon goes round."""

    streams: int
    prompt: int = 156
    tokens: int = 128
    begins: int = 14
    """Tokens of an answer before it goes round."""
    period: int = 7

    def token(self, id: str, place: int) -> int:
        """The token at a position of a stream, prompt included; the same every time."""
        first = self.prompt + self.begins
        place = place if place < first else first + (place - first) % self.period
        return hash((int(id), place)) % _VOCABULARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a burst came to."""

    speed: float
    """Tokens a second."""
    ttft_s: float
    """Median time to the first token."""
    drafts_per_token: float


class Stand:
    """A scheduler and a controller on a machine, over several bursts."""

    def __init__(self, machine: Machine, day: Day, *, speculates: bool, max_streams: int = 16) -> None:
        self.controller = LearnedController(max_prefill_tokens=128, max_slowdown=2.0, drafts=speculates)
        self._scheduler = make_scheduler(
            blocks=16_000, block_size=16, max_sequences=max_streams, max_batch_tokens=512, max_model_len=8192
        )
        self._machine, self._factors = machine, day.factors()
        self._num_added = 0

    def run(self, load: Looping) -> Told:
        """Serves one burst to its end."""
        for _ in range(load.streams):
            self._num_added += 1
            id = str(self._num_added)
            prompt = [load.token(id, place) for place in range(load.prompt)]
            self._scheduler.add(make_add(id, prompt=prompt, max_tokens=load.tokens, ignore_eos=True, tenant=id))
        seconds, num_tokens, num_drafts = 0.0, 0, 0
        first_at: dict[str, float] = {}
        while self._scheduler.has_work:
            step_s, ids, drafts = self._step(load)
            seconds, num_tokens, num_drafts = seconds + step_s, num_tokens + len(ids), num_drafts + drafts
            for id in ids:
                first_at.setdefault(id, seconds)
        ttft_s = median(first_at.values())
        return Told(speed=num_tokens / seconds, ttft_s=ttft_s, drafts_per_token=num_drafts / num_tokens)

    def _step(self, load: Looping) -> tuple[float, list[str], int]:
        """Its time, whose tokens it brought, and how many drafts it had."""
        scheduler = self._scheduler
        batch = scheduler.schedule(0.0, self.controller.limits(scheduler))
        chance, slow = next(self._factors)
        step_s = self._machine.step_s(batch) * chance * slow
        drawn = [load.token(span.id, place) for span in batch.spans for place in _drawn_at(span)]
        emitted = scheduler.settle(batch, make_drawn(*drawn))
        drafted = Drafted(num_looked_up=scheduler.drafting.take_looked_up())
        self.controller.observe(batch, step_s=step_s, compute_s=step_s, drafted=drafted)
        return step_s, [each.id for each in emitted], sum(len(span.drafts) for span in batch.spans)


def _drawn_at(span: Span) -> Iterable[int]:
    """The positions whose tokens a span draws."""
    known = span.end - len(span.drafts)
    return range(known, known + len(span.drawn))
