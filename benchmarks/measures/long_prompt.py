"""The time between tokens of running streams while a long prompt of somebody else is prefilled."""

from dataclasses import dataclass
from statistics import median

from axon.engine.core import EngineCore
from benchmarks.measures.drive import Driver, make_prompt_ids
from benchmarks.measures.figures import percentile
from benchmarks.measures.svg import Point

_PROMPT_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Gaps of the first stream as (seconds since the start, milliseconds), and when the prompt was at work."""

    gaps: list[Point]
    began_s: float
    ended_s: float
    num_prompt_tokens: int

    @property
    def before_ms(self) -> float:
        """The middle gap before the prompt came."""
        return median(gap for moment, gap in self.gaps if moment <= self.began_s)

    @property
    def during_ms(self) -> list[float]:
        """The gaps that ended while it was prefilled."""
        return [gap for moment, gap in self.gaps if self.began_s < moment <= self.ended_s]

    def slowdown(self, share: float = 0.5) -> float:
        """That percentile of the gaps during it, against the middle one before."""
        return percentile(self.during_ms, share) / self.before_ms


def disturb(
    engine: EngineCore, *, num_streams: int, quiet_steps: int, prompt_tokens: int, max_tokens: int, vocab_size: int
) -> Disturbance:
    """Streams run alone for ``quiet_steps``, then with the prompt until its first token, then alone again."""
    driver = Driver(engine)
    for index in range(num_streams):
        id = f"stream-{index}"
        driver.add(id, make_prompt_ids(id, _PROMPT_TOKENS, vocab_size), max_tokens, tenant=id)
    first = driver.stamps["stream-0"]
    driver.run_until(lambda: len(first) > quiet_steps)
    driver.add("long", make_prompt_ids("long", prompt_tokens, vocab_size), 1, tenant="long")
    driver.run_until(lambda: driver.stamps["long"])
    assert len(first) < max_tokens, "the streams ended before the prompt was prefilled"
    until = len(first) + quiet_steps // 2
    driver.run_until(lambda: len(first) >= until)
    start = driver.added_at["stream-0"]
    gaps = [(moment - start, 1000 * gap) for moment, gap in zip(first[1:], driver.gaps_s("stream-0"), strict=True)]
    driver.engine.abort([f"stream-{index}" for index in range(num_streams)])
    return Disturbance(
        gaps=gaps,
        began_s=driver.added_at["long"] - start,
        ended_s=driver.stamps["long"][0] - start,
        num_prompt_tokens=prompt_tokens,
    )
