"""What a token costs at the end of a growing answer, with its past in KV blocks and with its past computed anew."""

from collections.abc import Sequence
from statistics import median

from axon.engine.core import EngineCore
from benchmarks.measures.drive import Driver, make_prompt_ids
from benchmarks.measures.svg import Point

_PROMPT_TOKENS = 16
_WINDOW = 16
"""Tokens around a length whose middle gap counts."""


def cached(engine: EngineCore, lengths: Sequence[int], vocab_size: int) -> list[Point]:
    """Milliseconds per token at each length of one answer."""
    driver = Driver(engine)
    driver.add("cached", make_prompt_ids("cached", _PROMPT_TOKENS, vocab_size), max(lengths) + _WINDOW)
    driver.finish()
    gaps = driver.gaps_s("cached")
    return [(n, 1000 * median(gaps[max(0, n - 1 - _WINDOW // 2) : n - 1 + _WINDOW // 2])) for n in lengths]


def uncached(engine: EngineCore, lengths: Sequence[int], vocab_size: int, rounds: int = 3) -> list[Point]:
    """Milliseconds for one token after so many, none of which is kept: each is another tenant's prompt."""
    points = []
    for length in lengths:
        driver = Driver(engine)
        for number in range(rounds):
            id = f"uncached-{length}-{number}"
            driver.add(id, make_prompt_ids(id, _PROMPT_TOKENS + length, vocab_size), 1, tenant=id)
            driver.finish()
        points.append((float(length), 1000 * median(driver.ttft_s(id) for id in driver.stamps)))
    return points
