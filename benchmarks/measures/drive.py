"""An engine in this process, driven step by step, with a note of when each token came. Knows no claim."""

import random
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

from axon.domain.sampling import Sampling
from axon.engine.core import EngineCore
from axon.engine.protocol.messages import Add


class Driver:
    """Owns the engine's sequences for the length of a measure."""

    def __init__(self, engine: EngineCore) -> None:
        self.engine = engine
        self.added_at: dict[str, float] = {}
        self.stamps: dict[str, list[float]] = defaultdict(list)
        self.tokens: dict[str, list[int]] = defaultdict(list)

    def add(self, id: str, prompt_ids: list[int], num_tokens: int, *, tenant: str = "bench") -> None:
        """Greedy, exactly ``num_tokens`` long."""
        self.added_at[id] = time.perf_counter()
        sampling = Sampling(max_tokens=num_tokens, temperature=0.0, ignore_eos=True)
        self.engine.add(Add(id=id, prompt_ids=prompt_ids, sampling=sampling, seed=0, tenant=tenant))

    def step(self) -> None:
        """One step; raises where the engine refused something."""
        output = self.engine.step()
        now = time.perf_counter()
        assert not output.refused, output.refused
        for emitted in output.emitted:
            self.stamps[emitted.id].append(now)
            self.tokens[emitted.id].append(emitted.token)

    def run_until(self, done: Callable[[], object]) -> None:
        """Steps until it is so or nothing is left to do."""
        while self.engine.has_work and not done():
            self.step()

    def finish(self) -> float:
        """Steps until nothing is left to do; returns the seconds it took."""
        started = time.perf_counter()
        self.run_until(lambda: False)
        return time.perf_counter() - started

    def ttft_s(self, id: str) -> float:
        """Until the sequence's first token."""
        return self.stamps[id][0] - self.added_at[id]

    def gaps_s(self, id: str) -> list[float]:
        """Between the sequence's tokens."""
        return [later - earlier for earlier, later in pairwise(self.stamps[id])]


def make_prompt_ids(seed: str, num_tokens: int, vocab_size: int) -> list[int]:
    """Random ids of ordinary tokens; another seed shares no prefix."""
    numbers = random.Random(seed)
    return [numbers.randrange(vocab_size // 8, vocab_size * 7 // 8) for _ in range(num_tokens)]
