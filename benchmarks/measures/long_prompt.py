"""The time between tokens of running streams while a long prompt of somebody else is prefilled."""

from dataclasses import dataclass
from statistics import median

from axon.engine.core import EngineCore
from benchmarks.measures.drive import Driver, make_prompt_ids
from benchmarks.measures.figures import percentile
from benchmarks.measures.svg import Point

_PROMPT_TOKENS = 32
_WINDOW = 16
"""Tokens around one whose middle gap counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Gaps of the first stream as (seconds since the start, milliseconds), and when the prompt was at work."""

    gaps: list[Point]
    alone_ms: list[float]
    """The same gaps of the same streams, without the prompt: a stream slows down by itself as it grows."""
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
        return [self.gaps[place][1] for place in self._places]

    def slowdown(self, share: float = 0.5) -> float:
        """That percentile of how much longer the gaps during it are than those of the same tokens without it."""
        return percentile([self.gaps[place][1] / self._alone(place) for place in self._places], share)

    @property
    def _places(self) -> list[int]:
        return [place for place, (moment, _) in enumerate(self.gaps) if self.began_s < moment <= self.ended_s]

    def _alone(self, place: int) -> float:
        return median(self.alone_ms[max(0, place - _WINDOW // 2) : place + _WINDOW // 2 + 1])


def disturb(
    engine: EngineCore, *, num_streams: int, quiet_steps: int, prompt_tokens: int, max_tokens: int, vocab_size: int
) -> Disturbance:
    """Streams run alone for ``quiet_steps``, then with the prompt until its first token; then the same without it."""
    driver = Driver(engine)
    ids = _add_streams(driver, "beside", num_streams, max_tokens, vocab_size)
    first = driver.stamps[ids[0]]
    driver.run_until(lambda: len(first) > quiet_steps)
    driver.add("long", make_prompt_ids("long", prompt_tokens, vocab_size), 1, tenant="long")
    driver.run_until(lambda: driver.stamps["long"])
    assert len(first) < max_tokens, "the streams ended before the prompt was prefilled"
    until = len(first) + quiet_steps // 2
    driver.run_until(lambda: len(first) >= until)
    driver.engine.abort(ids)
    alone_ids = _add_streams(driver, "alone", num_streams, max_tokens, vocab_size)
    alone = driver.stamps[alone_ids[0]]
    driver.run_until(lambda: len(alone) >= len(first))
    driver.engine.abort(alone_ids)
    start = driver.added_at[ids[0]]
    gaps = [(moment - start, 1000 * gap) for moment, gap in zip(first[1:], driver.gaps_s(ids[0]), strict=True)]
    return Disturbance(
        gaps=gaps,
        alone_ms=[1000 * gap for gap in driver.gaps_s(alone_ids[0])],
        began_s=driver.added_at["long"] - start,
        ended_s=driver.stamps["long"][0] - start,
        num_prompt_tokens=prompt_tokens,
    )


def _add_streams(driver: Driver, name: str, count: int, max_tokens: int, vocab_size: int) -> list[str]:
    """Each another tenant's, so that none finds blocks of another."""
    ids = [f"{name}-{index}" for index in range(count)]
    for index, id in enumerate(ids):
        driver.add(id, make_prompt_ids(f"stream-{index}", _PROMPT_TOKENS, vocab_size), max_tokens, tenant=id)
    return ids
