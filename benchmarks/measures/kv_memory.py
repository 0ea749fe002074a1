"""How much memory a token of context takes: the process's own growth against what the KV layout says."""

import os
from pathlib import Path

import numpy as np

from axon.engine.core import EngineCore
from benchmarks.measures.drive import Driver, make_prompt_ids
from benchmarks.measures.svg import Point


def growth(engine: EngineCore, *, num_sequences: int, tokens_each: int, vocab_size: int) -> list[Point]:
    """Bytes more than at the start, by tokens of context; the pool's memory is touched only as blocks are filled."""
    driver = Driver(engine)
    for warm in range(2):
        driver.add(f"warm-{warm}", make_prompt_ids(f"warm-{warm}", tokens_each, vocab_size), 1, tenant=f"warm-{warm}")
        driver.finish()
    start, points = rss_bytes(), [(0.0, 0.0)]
    for index in range(num_sequences):
        id = f"memory-{index}"
        driver.add(id, make_prompt_ids(id, tokens_each, vocab_size), 1, tenant=id)
        driver.finish()
        points.append((float((index + 1) * tokens_each), float(rss_bytes() - start)))
    return points


def slope(points: list[Point]) -> float:
    """Bytes per token, by least squares."""
    tokens, grown = np.array(points).T
    return float(np.polyfit(tokens, grown, 1)[0])


def rss_bytes() -> int:
    """Of this process."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
