"""Bursts of answers that repeat themselves, on machines that do not exist: the real scheduler and controller, in
simulated time. Holds no assertions.

python -m tests.engine.schedule.lookups_on_machines        the table of benchmarks/README.md
"""

from dataclasses import dataclass
from statistics import mean, median

from axon.engine.drafts import Drafted
from axon.engine.schedule.limits.learned_controller import LearnedController
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.engine.schedule.machines import NEOVERSE, TILED, XEON, Day, Machine, drawn_at

DAY = Day(jitter=0.05, seed=3)
_VOCABULARY = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Streams of one tenant that come at once, each with a prompt that never repeats itself."""

    num_streams: int
    num_prompt_tokens: int = 156
    num_tokens: int = 128
    num_before_loop: int = 14
    """Tokens of an answer before it goes round."""
    period: int = 7

    def token(self, id: str, position: int) -> int:
        """The token at a position of a stream, prompt included; the same every time."""
        first = self.num_prompt_tokens + self.num_before_loop
        looped = position if position < first else first + (position - first) % self.period
        return hash((int(id), looped)) % _VOCABULARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose(Burst):
    """Answers in which the same two tokens come again and again, each time followed by others."""

    def token(self, id: str, position: int) -> int:
        return position % 4 if position % 4 < 2 else hash((int(id), position)) % _VOCABULARY


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstResult:
    """The figures of one burst."""

    tokens_per_s: float
    ttft_s: float
    """Median time to the first token."""
    drafts_per_token: float


class Stand:
    """A scheduler and a controller on a machine, over several bursts."""

    def __init__(self, machine: Machine, day: Day, *, speculates: bool) -> None:
        self.controller = LearnedController(max_prefill_tokens=128, max_slowdown=2.0, drafts=speculates)
        self._scheduler = make_scheduler(
            blocks=16_000, block_size=16, max_sequences=16, max_batch_tokens=512, max_model_len=8192
        )
        self._machine, self._factors = machine, day.factors()
        self._num_added = 0

    def run(self, burst: Burst) -> BurstResult:
        """Serves one burst to its end."""
        for _ in range(burst.num_streams):
            self._num_added += 1
            id = str(self._num_added)
            prompt = [burst.token(id, position) for position in range(burst.num_prompt_tokens)]
            self._scheduler.add(make_add(id, prompt=prompt, max_tokens=burst.num_tokens, ignore_eos=True))
        seconds, num_tokens, num_drafts = 0.0, 0, 0
        first_at: dict[str, float] = {}
        while self._scheduler.has_work:
            step_s, ids, drafts = self._step(burst)
            seconds, num_tokens, num_drafts = seconds + step_s, num_tokens + len(ids), num_drafts + drafts
            for id in ids:
                first_at.setdefault(id, seconds)
        return BurstResult(
            tokens_per_s=num_tokens / seconds,
            ttft_s=median(first_at.values()),
            drafts_per_token=num_drafts / num_tokens,
        )

    def _step(self, burst: Burst) -> tuple[float, list[str], int]:
        """Computes one step; returns its time, the stream of each token that it brought, and its number of drafts."""
        scheduler = self._scheduler
        batch = scheduler.schedule(0.0, self.controller.limits(scheduler))
        chance, slow = next(self._factors)
        step_s = self._machine.step_s(batch) * chance * slow
        drawn = [burst.token(span.id, position) for span in batch.spans for position in drawn_at(span)]
        emitted = scheduler.settle(batch, make_drawn(*drawn))
        drafted = Drafted(num_looked_up=scheduler.drafting.take_looked_up())
        self.controller.observe(batch, step_s=step_s, compute_s=step_s, drafted=drafted)
        return step_s, [each.id for each in emitted], sum(len(span.drafts) for span in batch.spans)


def later_bursts(machine: Machine, burst: Burst, *, speculates: bool, num_bursts: int = 3) -> list[BurstResult]:
    """The bursts behind the first, in which the machine is new to the controller."""
    stand = Stand(machine, DAY, speculates=speculates)
    return [stand.run(burst) for _ in range(num_bursts)][1:]


def main() -> None:
    print("| machine, streams | no drafts | drafts | drafts a token |\n|---|---|---|---|")
    for name, machine in (("AVX-512", XEON), ("AMX", TILED), ("ARM", NEOVERSE)):
        for num_streams in (4, 16):
            cells = []
            for speculates in (False, True):
                found = later_bursts(machine, Burst(num_streams=num_streams), speculates=speculates, num_bursts=4)
                ttft_ms = 1000 * mean(each.ttft_s for each in found)
                cells.append(f"{mean(each.tokens_per_s for each in found):,.0f} ({ttft_ms:,.0f} ms)")
            drafts = mean(each.drafts_per_token for each in found)
            print(f"| {name}, {num_streams} | {' | '.join(cells)} | {drafts:.2f} |")


if __name__ == "__main__":
    main()
