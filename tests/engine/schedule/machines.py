"""Times of steps on machines that do not exist, and a scheduler with a controller on one of them. Holds no assertions.

A machine has a time for the rows of a step, which need not be linear (a few rows wait for memory, many for arithmetic),
and times for what rows attend to. A day on it brings jitter, rare outliers, stretches in which another process has the
cores, and a cold first step.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

from axon.engine.batch import Batch, Span
from axon.engine.schedule.limits.controller import StepController
from tests.engine.builders import make_add, make_drawn, make_scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The times of its steps without any disturbance, in seconds."""

    rows_s: tuple[tuple[int, float], ...]
    """Times of steps by their number of rows; between two of them the time is linear."""
    stream_attended_s: float
    """Added for each token that a stream's row attends to."""
    prompt_attended_s: float
    """Added for each token that a prompt's row attends to."""
    prompt_s: float = 0.0
    """Added by prompt rows, however few."""

    def step_s(self, batch: Batch) -> float:
        """The time of a batch."""
        streams = [span for span in batch.spans if span.is_stream]
        prompts = [span for span in batch.spans if not span.is_stream]
        attended_s = self.stream_attended_s * _num_attended(streams) + self.prompt_attended_s * _num_attended(prompts)
        return self._rows_s(batch.num_tokens) + attended_s + (self.prompt_s if prompts else 0.0)

    def _rows_s(self, num_rows: int) -> float:
        pairs = list(pairwise(self.rows_s))
        (x0, y0), (x1, y1) = pairs[min(max(bisect_left(self.rows_s, (num_rows,)) - 1, 0), len(pairs) - 1)]
        return y0 + (y1 - y0) * (num_rows - x0) / (x1 - x0)


def _num_attended(spans: list[Span]) -> float:
    return sum(len(span.token_ids) * (span.first + span.end) / 2 for span in spans)


def drawn_at(span: Span) -> range:
    """The positions whose tokens a span draws."""
    known = span.end - len(span.drafts)
    return range(known, known + len(span.drawn))


XEON = Machine(
    rows_s=((1, 0.0059), (4, 0.0066), (8, 0.0103), (16, 0.0158), (32, 0.031), (128, 0.079), (512, 0.312)),
    stream_attended_s=1.6e-6,
    prompt_attended_s=4.7e-7,
    prompt_s=0.0005,
)
"""Two cores with AVX-512: four rows take little longer than one, and many rows cost half of what they add to few."""
NEOVERSE = Machine(
    rows_s=((1, 0.0065), (4, 0.0092), (8, 0.0165), (16, 0.0315), (32, 0.063), (128, 0.165), (512, 0.64)),
    stream_attended_s=1.9e-6,
    prompt_attended_s=1.0e-6,
)
"""Two ARM cores, whose time is nearly linear in the rows."""
TILED = Machine(
    rows_s=((1, 0.0059), (4, 0.0066), (8, 0.0103), (16, 0.0125), (32, 0.016), (128, 0.03), (512, 0.1)),
    stream_attended_s=1.6e-6,
    prompt_attended_s=1.5e-7,
    prompt_s=0.001,
)
"""A matrix unit, which makes prompts cheap when many of their tokens are in one step."""
WIDE = Machine(rows_s=((1, 0.004), (64, 0.005), (512, 0.012)), stream_attended_s=2e-8, prompt_attended_s=2e-8)
"""Most of a step's time is fixed, so that even the largest chunk fits."""
H200 = Machine(
    rows_s=(
        (1, 0.00395),
        (4, 0.00412),
        (16, 0.00433),
        (32, 0.0047),
        (64, 0.0055),
        (80, 0.0061),
        (256, 0.012),
        (512, 0.02),
    ),
    stream_attended_s=3e-8,
    prompt_attended_s=1e-9,
)
"""A GPU with a model of 8B in bfloat16: rows cost next to nothing beside the weights that a step reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What disturbs the steps."""

    jitter: float = 0.0
    """Standard deviation of the logarithm of every step's time."""
    outliers: float = 0.0
    """Fraction of steps that take 5 to 20 times as long."""
    slow_factor: float = 1.0
    """Factor on all steps while another process has the cores."""
    slow_share: float = 0.0
    """Fraction of the steps in which it has."""
    slow_until: int = 0
    """The step up to which it has them from the start."""
    cold_factor: float = 1.0
    """Factor on the first step."""
    seed: int = 0

    def chance(self, numbers: Random) -> float:
        """The factor of one measured time by its own chance."""
        jitter = numbers.lognormvariate(0, self.jitter)
        return jitter * numbers.uniform(5, 20) if numbers.random() < self.outliers else jitter

    def factors(self) -> Iterator[tuple[float, float]]:
        """Of each step: the factor by its own chance, and the one of the process that has the cores."""
        numbers = Random(self.seed)
        num_slow = max(0, self.slow_until - 1)
        yield self.cold_factor, 1.0
        while True:
            chance = self.chance(numbers)
            if num_slow:
                num_slow -= 1
            elif numbers.random() < self.slow_share / 50:
                num_slow = numbers.randint(20, 80)
            yield chance, self.slow_factor if num_slow else 1.0


QUIET = Day(cold_factor=5.0)


@dataclass
class Seen:
    """The steps in which a prompt stood beside the streams."""

    slowdowns: list[float] = field(default_factory=list)
    """Times of steps over those of their streams alone, at the same moment."""
    chunks: list[int] = field(default_factory=list)
    possible: list[int] = field(default_factory=list)
    """The chunk that doubles the step's time, for one who knows the machine; at least 1."""

    def slowdown(self, share: float) -> float:
        """That quantile of the slowdowns."""
        return sorted(self.slowdowns)[int(share * len(self.slowdowns))]

    def progress(self, *, last: int) -> float:
        """Prompt tokens of the last steps over those that were possible."""
        return sum(self.chunks[-last:]) / sum(self.possible[-last:])


def serve(
    machine: Machine,
    day: Day,
    controller: StepController,
    *,
    num_streams: int,
    num_steps: int,
    quiet_steps: int = 60,
    prompt_tokens: int = 4000,
    max_prefill_tokens: int = 128,
) -> Seen:
    """Streams run alone, then beside one long prompt after the other, on the real scheduler in simulated time."""
    scheduler = make_scheduler(blocks=16_000, block_size=16, max_sequences=16, max_batch_tokens=512, max_model_len=8192)
    factors = day.factors()
    seen = Seen()
    for number in range(num_streams):
        prompt = [7 * number + each for each in range(32)]
        scheduler.add(make_add(f"s{number}", prompt=prompt, max_tokens=8000, tenant=f"s{number}"))
    for step in range(1 + quiet_steps + num_steps):
        if step > quiet_steps and scheduler.num_running == num_streams:
            prompt = [step + 3 * each for each in range(prompt_tokens)]
            scheduler.add(make_add(f"p{step}", prompt=prompt, max_tokens=1, tenant="long"))
        batch = scheduler.schedule(0.0, controller.limits(scheduler))
        chance, slow_factor = next(factors)
        step_s = machine.step_s(batch) * chance * slow_factor
        scheduler.settle(batch, make_drawn(*[1] * len(batch.draws)))
        controller.observe(batch, step_s=step_s, compute_s=step_s)
        if step > quiet_steps:
            streams = Batch(tuple(span for span in batch.spans if span.is_stream))
            prompts = [span for span in batch.spans if not span.is_stream]
            seen.slowdowns.append(step_s / slow_factor / machine.step_s(streams))
            seen.chunks.append(sum(len(span.token_ids) for span in prompts))
            at = prompts[0].first if prompts else 0
            seen.possible.append(possible_tokens(machine, streams, at, max_prefill_tokens) if prompts else 0)
    return seen


def possible_tokens(machine: Machine, streams: Batch, at: int, most: int, slowdown: float = 2.0) -> int:
    """The largest chunk at a position that lengthens a step by no more than this; 0 if even one token does."""
    allowed_s = slowdown * machine.step_s(streams)
    one = Span(id="prompt", first=at, token_ids=(1,), block_ids=())
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        chunk = replace(one, token_ids=(1,) * middle)
        if machine.step_s(Batch((*streams.spans, chunk))) <= allowed_s:
            low = middle
        else:
            high = middle - 1
    return low
