"""Does memory grow, and what does a thing that is held cost? An engine's process, then a server's.

python -m benchmarks.memory                            every part, ten minutes each
python -m benchmarks.memory --only engine              2,000 requests on the default model in int8
python -m benchmarks.memory --only readers followers sessions --minutes 1
python -m benchmarks.memory --only engine --requests 500 --model FOLDER --dtype float32
python -m benchmarks.memory --only engine --kv-folder FOLDER     with copies of KV blocks in files
python -m benchmarks.memory --only engine --draft-model FOLDER   with a draft head, or a draft model

``engine``: no server around it. Requests differ in length, sampling, tenant and priority; some share a prefix, come as
four choices, replay tokens, are aborted half way or refused. The KV pool is small, so that all of it is touched within
the first 200. ``readers``: 500 streams whose clients never read; the server resets each after its write timeout, and
the client asks anew. ``followers``: 5,000 streams on which nothing comes. ``sessions``: 10,000 responses that are kept.
These three run ``axon serve`` with an engine that echoes. Prints a table and one JSON line last; ends with 1 where
memory is more than 5 % above what it was once everything was there.
"""

import argparse
import asyncio
import gc
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.core import EngineCore  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from benchmarks.measures.figures import Figures, rounded, table  # noqa: E402
from benchmarks.measures.memory_use import MOST_DRIFT  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
SEED = 0
FIRST = 200
"""Requests after which memory is to stay where it is."""
NUM_REQUESTS = 2000
PARTS = ("engine", "readers", "followers", "sessions")
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


def measure_engine(options: argparse.Namespace) -> Figures:
    """Mixed requests in this process."""
    from axon.engine.engine import Engine
    from axon.engine.load.architecture import read_architecture

    config = EngineConfig(
        dtype=options.dtype,
        kv_memory_bytes=options.kv_memory_mb << 20,
        max_sequences=16,
        kv_folder=options.kv_folder,
        kv_folder_bytes=256 << 20,
        draft_model=options.draft_model,
    )
    engine = Engine(config, options.model)
    load = Load(read_architecture(options.model).vocab_size, longest=120)
    print(f"{engine.ready().kernel}\n{'requests':>9} {'MB':>9}\n{0:9} {resident_bytes() / 1e6:9.1f}", flush=True)
    before, after = measure(
        *(engine, load),
        first=min(FIRST, options.requests),
        total=options.requests,
        tell=lambda done, num_bytes: print(f"{done:9} {num_bytes / 1e6:9.1f}", flush=True),
    )
    counters = engine.step().counters
    return {
        "num": float(options.requests),
        "rss_mb_before": before / 1e6,
        "rss_mb_last": after / 1e6,
        "drift": after / before,
        "emitted": float(load.num_emitted),
        "aborted": float(load.num_aborted),
        "refused": float(load.num_refused),
        "parked": float(counters.preemptions),
        "drafted": float(counters.drafted),
        "drafted_by_model": float(counters.model_drafted),
    }


def measure_part(part: str, options: argparse.Namespace) -> Figures:
    """One part's figures."""
    if part == "engine":
        return measure_engine(options)
    from benchmarks.measures import holding

    seconds = 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="axon-memory-") as folder:
        match part:
            case "readers":
                return holding.measure_readers(Path(folder), options.readers, seconds)
            case "followers":
                return holding.measure_followers(Path(folder), options.followers, seconds)
        return asyncio.run(holding.measure_sessions(Path(folder), options.sessions, seconds))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--minutes", type=float, default=10.0, help="that each part of the server is watched")
    parser.add_argument("--readers", type=int, default=500, help="streams whose clients never read")
    parser.add_argument("--followers", type=int, default=5_000, help="of silent streams")
    parser.add_argument("--sessions", type=int, default=10_000, help="responses that are kept")
    parser.add_argument("--requests", type=int, default=NUM_REQUESTS, help="to the engine")
    parser.add_argument("--model", type=Path, default=MODEL_DIR, help="a folder; the default model where tests keep it")
    parser.add_argument("--dtype", default="int8", choices=("int8", "float32", "bfloat16"))
    parser.add_argument("--kv-memory-mb", type=int, default=32)
    parser.add_argument("--kv-folder", default="", help="where the engine keeps copies of KV blocks, 256 MiB of them")
    parser.add_argument("--draft-model", default="", help="a folder: of a draft head, or of a smaller model")
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model, some seconds")
    options = parser.parse_args()
    if options.smoke:
        options.only, options.minutes = ["readers", "followers", "sessions"], 0.02
        options.readers, options.followers, options.sessions = 5, 5, 10
    return options


def main() -> int:
    """Returns 1 when memory has grown."""
    options = parse()
    report = Report("memory", options)
    rows: dict[str, Figures] = {}
    for part in options.only:
        rows[part] = measure_part(part, options)
        print(table({part: rows[part]}), flush=True)
    grown = [part for part, figures in rows.items() if figures["drift"] > MOST_DRIFT]
    report.end(
        {
            "grown": grown,
            "parts": rounded(rows),
        }
    )
    return int(bool(grown) and not options.smoke)


if __name__ == "__main__":
    sys.exit(main())
