"""Is a conversation that left the device back sooner from host memory or files than it is computed again?

python -m benchmarks.kv_tiers                          the default model on the CPU, files with a cold page cache
python -m benchmarks.kv_tiers --tokens 2000 --rounds 1 --model FOLDER
python -m benchmarks.kv_tiers --gpu 8b                 random weights of that shape on a GPU, pinned host memory
python -m benchmarks.kv_tiers --gpu 0.6b --smoke       one short conversation: shows that all runs, promises nothing
python -m benchmarks.kv_tiers --save                   also keeps the JSON in benchmarks/results/

A round: a conversation of so many tokens comes for the first time and is computed; another one takes its blocks; the
first one comes back. Each time the seconds until its first token are measured. Before it comes back from files, these
are synced and dropped from the page cache (POSIX_FADV_DONTNEED). ``sessions``: ten times as many conversations as the
device holds, all of which come twice. Ends with 1 where the ratio is above what is promised: 0.3 from files on a CPU,
0.2 from host memory on a GPU.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.load.architecture import read_architecture  # noqa: E402
from benchmarks.measures.drive import Driver, make_prompt_ids  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded, table  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
MOST = {"cpu": 0.3, "cuda": 0.2}
"""The promised ratio of coming back to computing again."""
ANSWER = 4
SESSION_TOKENS = 256
HELD = 4
"""Short conversations that the device holds, of ten times as many that live."""


class Bench:
    """An engine with a shelf, and how to make its files cold."""

    def __init__(self, engine: Engine, vocab_size: int, cool: Callable[[], None]) -> None:
        self._engine, self._vocab_size, self._cool = engine, vocab_size, cool
        self._count = 0

    def ask(self, name: str, num_tokens: int) -> tuple[float, list[int], int]:
        """Seconds to the first token of a conversation, its tokens, and how many of its prompt were cached."""
        self._count += 1
        id, driver = f"{name}-{self._count}", Driver(self._engine)
        cached_before = self._loaded()
        driver.add(id, make_prompt_ids(name, num_tokens, self._vocab_size), ANSWER)
        driver.finish()
        return driver.ttft_s(id), driver.tokens[id], self._loaded() - cached_before

    def round(self, number: int, num_tokens: int) -> Figures:
        """One conversation computed, driven out and brought back."""
        first_s, expected, _ = self.ask(f"talk-{number}", num_tokens)
        self.ask(f"other-{number}", num_tokens)
        self._cool()
        again_s, tokens, num_loaded = self.ask(f"talk-{number}", num_tokens)
        assert tokens == expected or self._engine._launcher is not None, "another answer than before"
        assert num_loaded > 0.9 * num_tokens, f"only {num_loaded} of {num_tokens} tokens came from the shelf"
        print(f"computed in {first_s:.3f} s, back in {again_s:.3f} s", file=sys.stderr, flush=True)
        return {"computed_s": first_s, "back_s": again_s, "ratio": again_s / first_s}

    def sessions(self, count: int) -> Figures:
        """Many more short conversations than the device holds, twice over; one that is refused raises."""
        for number in range(count):
            self.ask(f"short-{number}", SESSION_TOKENS)
        began, num_loaded = time.perf_counter(), 0
        for number in range(count):
            num_loaded += self.ask(f"short-{number}", SESSION_TOKENS)[2]
        found = num_loaded / (count * SESSION_TOKENS)
        return {"sessions": count, "found": found, "seconds": time.perf_counter() - began}

    def _loaded(self) -> int:
        shelf = self._engine._scheduler.shelf
        assert shelf is not None
        return shelf.counters().loaded_tokens


def cool(folder: Path) -> None:
    """Takes the files of a folder out of the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def on_cpu(model_dir: Path, folder: Path, num_tokens: int) -> Iterator[Bench]:
    """The model in int8, with KV memory for one conversation."""
    from axon.engine.native.model import block_bytes

    architecture = read_architecture(model_dir)
    kv_bytes = (num_tokens // 16 + 8) * block_bytes(architecture)
    config = EngineConfig(
        device="cpu", dtype="int8", kv_memory_bytes=kv_bytes, kv_folder=str(folder), max_model_len=num_tokens + 64
    )
    engine = Engine(config, model_dir)
    try:
        yield Bench(engine, architecture.vocab_size, lambda: cool(folder))
    finally:
        engine.close()


@contextmanager
def on_gpu(shape: str, num_tokens: int) -> Iterator[Bench]:
    """Random weights of a shape, with KV memory for one conversation, and host memory for all."""
    from benchmarks.engine_gpu import SHAPES, open_engine

    config = SHAPES[shape] = SHAPES[shape] | {"max_position_embeddings": num_tokens + 128}
    token_bytes = 4 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]
    kv_bytes = (num_tokens // 64 + 2) * 64 * token_bytes
    engine = open_engine(shape, kv_memory_bytes=kv_bytes, kv_host_bytes=16 * kv_bytes)
    try:
        while engine.tend():  # records the graphs that would follow between steps
            pass
        yield Bench(engine, config["vocab_size"], lambda: None)
    finally:
        engine.close()


def measure(
    opened: Callable[[int], AbstractContextManager[Bench]], *, num_tokens: int, rounds: int
) -> dict[str, Figures]:
    """All figures, after a round that warms up and measures the costs by which copies are chosen."""
    with opened(num_tokens) as bench:
        bench.round(-1, num_tokens)
        talks = median([bench.round(number, num_tokens) for number in range(rounds)])
    with opened(HELD * SESSION_TOKENS) as bench:
        sessions = bench.sessions(10 * HELD)
    return {f"a conversation of {num_tokens} tokens": talks, "ten times what the device holds": sessions}


def main() -> int:
    """Measures, prints and returns whether the promise is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", type=Path, default=MODEL_DIR)
    parser.add_argument("--folder", type=Path, help="where the files are put; a temporary folder by default")
    parser.add_argument("--gpu", default="", help="8b or 0.6b: random weights of that shape on a GPU")
    parser.add_argument("--smoke", action="store_true", help="one round of a short conversation, and no promise")
    add_report_options(parser)
    options = parser.parse_args()
    if options.smoke:
        options.tokens, options.rounds = 512, 1
    report = Report("kv_tiers", options)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        opened = partial(on_gpu, options.gpu) if options.gpu else partial(on_cpu, options.model, Path(folder))
        rows = measure(opened, num_tokens=options.tokens, rounds=options.rounds)
    device = "cuda" if options.gpu else "cpu"
    ratio = next(iter(rows.values()))["ratio"]
    print(table(rows))
    print(f"\nratio {ratio:.3f}, promised at most {MOST[device]}")
    report.end({"device": device, "rows": rounded(rows)}, called=f"kv-tiers-{device}")
    return int(ratio > MOST[device] and not options.smoke)


if __name__ == "__main__":
    sys.exit(main())
