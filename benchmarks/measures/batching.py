"""Answers of very different lengths: batches that wait for their longest, and slots that are filled as they get free.

The same engine runs all of it. ``padded`` is static batching as a padded tensor does it: a row that has ended is
computed on until its batch ends. ``shrinking`` drops ended rows but starts nothing new before the batch has ended.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from axon.engine.core import EngineCore
from benchmarks.measures.drive import Driver, make_prompt_ids

_PROMPT_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lognormal, clipped."""

    mu: float = 4.5
    sigma: float = 1.0
    least: int = 8
    most: int = 1024

    def draw(self, seed: int, count: int) -> list[int]:
        """The same numbers for the same seed."""
        numbers = random.Random(seed)
        drawn = (round(numbers.lognormvariate(self.mu, self.sigma)) for _ in range(count))
        return [min(self.most, max(self.least, length)) for length in drawn]


LENGTHS = Lengths()


def bound(lengths: Sequence[int], batch_size: int) -> float:
    """The most that continuous batching can gain where every step costs the same: E[max of a batch] / E[length]."""
    batches = [lengths[start : start + batch_size] for start in range(0, len(lengths), batch_size)]
    return fmean(max(batch) for batch in batches) / fmean(lengths)


def static(engine: EngineCore, lengths: Sequence[int], batch_size: int, vocab_size: int, *, padded: bool) -> float:
    """Useful tokens per second, one batch after the other."""
    seconds = 0.0
    for start in range(0, len(lengths), batch_size):
        batch = lengths[start : start + batch_size]
        driver = Driver(engine)
        for index, length in enumerate(batch):
            id = f"static-{padded}-{start + index}"
            prompt_ids = make_prompt_ids(id, _PROMPT_TOKENS, vocab_size)
            driver.add(id, prompt_ids, max(batch) if padded else length)
        seconds += driver.finish()
    return sum(lengths) / seconds


def continuous(engine: EngineCore, lengths: Sequence[int], vocab_size: int) -> tuple[float, float]:
    """Tokens per second while somebody waits for a slot, and to the end of the last answer."""
    driver = Driver(engine)
    for index, length in enumerate(lengths):
        id = f"continuous-{index}"
        driver.add(id, make_prompt_ids(id, _PROMPT_TOKENS, vocab_size), length)
    started = time.perf_counter()
    driver.run_until(lambda: len(driver.stamps) == len(lengths))
    steady = sum(map(len, driver.tokens.values())) / (time.perf_counter() - started)
    driver.finish()
    return steady, sum(lengths) / (time.perf_counter() - started)
