"""Memory of an engine's process under mixed requests: does it grow after the first few hundred? No server around it.

python -m benchmarks.memory                            2,000 requests on the default model in int8
python -m benchmarks.memory --requests 500             fewer
python -m benchmarks.memory --model FOLDER --dtype float32

Requests differ in length, sampling, tenant and priority; some share a prefix, come as four choices, replay tokens, are
aborted half way or refused. Prints a table and one JSON line last; ends with 1 when the memory after all of them is
more than 5 % above that after the first 200. The KV pool is small, so that all of it is touched by then.
"""

import argparse
import gc
import json
import os
import platform
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.core import EngineCore  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
SEED = 0
FIRST = 200
"""Requests after which memory is to stay where it is."""
MOST = 1.05
SAMPLINGS = (
    {"temperature": 0.0},
    {"temperature": 0.0, "logprobs": 5},
    {"temperature": 1.0},
    {"temperature": 0.8, "top_k": 40, "top_p": 0.9},
    {"temperature": 1.2, "min_p": 0.05},
    {"temperature": 0.7, "repetition_penalty": 1.2, "presence_penalty": 0.4, "frequency_penalty": 0.2, "logprobs": 1},
    {"temperature": 0.9, "logit_bias": ((5, 1.0), (9, -100.0)), "min_tokens": 3},
)


class Load:
    """Mixed requests, always the same ones."""

    def __init__(self, vocab_size: int, longest: int) -> None:
        self._random = random.Random(SEED)
        self._vocab_size = vocab_size
        self._longest = longest
        self._prefix = self._tokens(longest // 2)
        self.num_aborted = self.num_refused = self.num_emitted = 0

    def run(self, engine: EngineCore, count: int, first: int = 0) -> None:
        """Keeps the engine busy until ``count`` requests have ended, numbered from ``first``."""
        waiting = list(self._requests(range(first, first + count)))[::-1]
        doomed: set[str] = set()
        while waiting or engine.has_work:
            while waiting and self._random.random() < 0.7:
                add = waiting.pop()
                engine.add(add)
                if self._random.random() < 0.15:
                    doomed.add(add.id)
            output = engine.step()
            self.num_emitted += len(output.emitted)
            self.num_refused += len(output.refused)
            aborted = [each.id for each in output.emitted if each.id in doomed and self._random.random() < 0.3]
            engine.abort(aborted)
            doomed -= {each.id for each in output.emitted if each.finish} | set(aborted)
            self.num_aborted += len(aborted)
        engine.check()

    def _requests(self, numbers: range) -> Iterator[Add]:
        """Four choices count as four."""
        while numbers:
            prompt = self._prompt()
            num_choices = min(len(numbers), self._random.choice((1, 1, 1, 4)))
            sampling: Any = self._random.choice(SAMPLINGS)
            replayed = self._tokens(self._random.choice((0, 0, 0, 5)))
            tenant, priority = str(self._random.randrange(50)), self._random.choice((0, 0, 1))
            for choice, number in enumerate(numbers[:num_choices]):
                yield Add(
                    id=f"request-{number}",
                    prompt_ids=prompt,
                    output_ids=replayed,
                    sampling=Sampling(max_tokens=self._random.randint(6, 24), ignore_eos=True, **sampling),
                    seed=number - choice,
                    choice=choice,
                    tenant=tenant,
                    priority=priority,
                )
            numbers = numbers[num_choices:]

    def _prompt(self) -> list[int]:
        if self._random.random() < 0.03:
            return []  # which is refused
        shared = self._prefix if self._random.random() < 0.3 else []
        return [*shared, *self._tokens(self._random.randint(1, self._longest - len(shared)))]

    def _tokens(self, count: int) -> list[int]:
        return [self._random.randrange(self._vocab_size) for _ in range(count)]


def resident_bytes() -> int:
    """What this process holds in memory now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(
    engine: EngineCore, load: Load, *, first: int, total: int, tell: Callable[[int, int], None] = lambda *_: None
) -> tuple[int, int]:
    """Bytes held after the first requests and after all; ``tell`` hears of each tenth of the way."""
    load.run(engine, first)
    before = resident_bytes()
    tell(first, before)
    done, step = first, max(1, (total - first) // 9)
    while done < total:
        load.run(engine, min(step, total - done), done)
        done += min(step, total - done)
        tell(done, resident_bytes())
    return before, resident_bytes()


def main() -> int:
    """Returns 1 when memory has grown."""
    from axon.engine.engine import Engine
    from axon.engine.load.architecture import read_architecture

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--model", type=Path, default=MODEL_DIR, help="a folder; the default model where tests keep it")
    parser.add_argument("--dtype", default="int8", choices=("int8", "float32", "bfloat16"))
    parser.add_argument("--kv-memory-mb", type=int, default=32)
    options = parser.parse_args()
    config = EngineConfig(dtype=options.dtype, kv_memory_bytes=options.kv_memory_mb << 20, max_sequences=16)
    engine = Engine(config, options.model)
    load = Load(read_architecture(options.model).vocab_size, longest=120)
    print(f"{' '.join(sys.argv)}\n{platform.machine()}, {os.cpu_count()} cores, {engine.ready().kernel}")
    print(f"{'requests':>9} {'MB':>9}\n{0:9} {resident_bytes() / 1e6:9.1f}", flush=True)
    before, after = measure(
        *(engine, load),
        first=min(FIRST, options.requests),
        total=options.requests,
        tell=lambda done, num_bytes: print(f"{done:9} {num_bytes / 1e6:9.1f}", flush=True),
    )
    counts = {"emitted": load.num_emitted, "aborted": load.num_aborted, "refused": load.num_refused}
    preemptions = engine.step().counters.preemptions
    print(f"{counts}, {preemptions} times parked; {after / before:.4f} of the memory after {FIRST}")
    figures = {"requests": options.requests, "bytes_first": before, "bytes_last": after, "preemptions": preemptions}
    figures["ratio"] = round(after / before, 4)
    print(json.dumps({"benchmark": "memory", "kernel": engine.ready().kernel, **figures, **counts}))
    return int(after > MOST * before)


if __name__ == "__main__":
    sys.exit(main())
