"""What the engine's design promises, measured on this machine and drawn: no server, no HTTP, one process.

python -m benchmarks.engine                     a table, and one JSON line last
python -m benchmarks.engine --save              also keeps the JSON in benchmarks/results/ and the plots in docs/plots/
python -m benchmarks.engine --only batching     one part: kv_cache, batching, conversation, kv_memory or long_prompt
python -m benchmarks.engine --dtype float32     another arithmetic
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from axon.engine.config import EngineConfig, for_device  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.load.architecture import read_architecture  # noqa: E402
from axon.runtime.cores import usable_cores  # noqa: E402
from benchmarks.measures import batching, conversation, kv_cache, kv_memory, long_prompt  # noqa: E402
from benchmarks.measures.figures import Figures, rounded, table  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.measures.svg import Point, Series, bar_chart, line_chart  # noqa: E402

SEED = 0
BATCH_SIZE = 16
MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
PLOTS = ROOT / "docs" / "plots"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of each part is run."""

    lengths: tuple[int, ...] = (50, 100, 200, 400, 600, 800, 1000)
    num_batches: int = 4
    answers: batching.Lengths = batching.LENGTHS
    num_turns: int = 10
    ask_tokens: int = 64
    answer_tokens: int = 64
    memory_sequences: int = 16
    memory_tokens: int = 512
    num_streams: int = 4
    quiet_steps: int = 60
    prompt_tokens: int = 4000
    stream_tokens: int = 3500
    rounds: int = 3


SMOKE = Sizes(
    lengths=(4, 16),
    num_batches=1,
    answers=batching.Lengths(mu=1.5, sigma=0.5, least=2, most=12),
    num_turns=2,
    ask_tokens=8,
    answer_tokens=4,
    memory_sequences=4,
    memory_tokens=64,
    num_streams=2,
    quiet_steps=8,
    prompt_tokens=200,
    stream_tokens=300,
    rounds=1,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of a part: its figures by name, and its plot."""

    rows: dict[str, Figures]
    plot: str
    points: dict[str, list[Point]]


class Bench:
    """The parts over one model; each opens an engine of its own, so that none finds another's blocks."""

    def __init__(self, model_dir: Path, config: EngineConfig, sizes: Sizes) -> None:
        self._model_dir = model_dir
        # A token a step: gaps are then steps, and what they cost is what is measured.
        self._config = replace(for_device(config, "cpu"), speculate=False)
        self._sizes = sizes
        self._architecture = read_architecture(model_dir)
        self._vocab_size = self._architecture.vocab_size

    def kv_cache(self) -> Outcome:
        """Cost per token against the answer's length."""
        sizes = self._sizes
        # Without the cache the whole past is one prompt, computed at once.
        engine = self._open(max_batch_tokens=4096, max_prefill_tokens=4096)
        cached = kv_cache.cached(engine, sizes.lengths, self._vocab_size)
        uncached = kv_cache.uncached(engine, sizes.lengths, self._vocab_size, sizes.rounds)
        rows = {
            f"token {length:g}": {"with_cache_ms": kept, "without_cache_ms": anew}
            for (length, kept), (_, anew) in zip(cached, uncached, strict=True)
        }
        first, last = f"{sizes.lengths[0]}", f"{sizes.lengths[-1]}"
        rows[f"token {last} against {first}"] = {
            "with_cache": cached[-1][1] / cached[0][1],
            "without_cache": uncached[-1][1] / uncached[0][1],
        }
        series = [Series(name="without the cache", points=uncached), Series(name="with the cache", points=cached)]
        plot = line_chart(
            "Cost of the next token", x_label="tokens of the answer so far", y_label="ms per token", series=series
        )
        return Outcome(rows, plot, {"with_cache": cached, "without_cache": uncached})

    def batching(self) -> Outcome:
        """Continuous against static batching of very different lengths."""
        lengths = self._sizes.answers.draw(SEED, BATCH_SIZE * self._sizes.num_batches)
        steady, whole = batching.continuous(self._open(), lengths, self._vocab_size)
        rates = {
            "static, padded": batching.static(self._open(), lengths, BATCH_SIZE, self._vocab_size, padded=True),
            "static, shrinking": batching.static(self._open(), lengths, BATCH_SIZE, self._vocab_size, padded=False),
            "continuous": steady,
        }
        limit = batching.bound(lengths, BATCH_SIZE)
        many = batching.bound(self._sizes.answers.draw(SEED, BATCH_SIZE * 2000), BATCH_SIZE)
        ratio = steady / rates["static, padded"]
        rows = {
            "tokens/s": {**rates, "continuous, to the last answer's end": whole},
            "continuous against static": {
                "padded": ratio,
                "shrinking": steady / rates["static, shrinking"],
                "bound_of_these_lengths": limit,
                "bound_of_the_distribution": many,
                "share_of_bound": ratio / limit,
            },
        }
        plot = bar_chart(
            f"{len(lengths)} answers of 8–1024 tokens, {BATCH_SIZE} at once", y_label="tokens/s", groups={"": rates}
        )
        return Outcome(rows, plot, {})

    def conversation(self) -> Outcome:
        """Time to the first token by turn, with and without block reuse."""
        sizes = self._sizes
        by_name: dict[str, list[Point]] = {}
        for name, reuse in (("computed anew", False), ("blocks reused", True)):
            engine = self._open()
            runs = [
                conversation.turns(
                    engine,
                    num_turns=sizes.num_turns,
                    ask_tokens=sizes.ask_tokens,
                    answer_tokens=sizes.answer_tokens,
                    vocab_size=self._vocab_size,
                    reuse=reuse,
                    round_number=number,
                )
                for number in range(sizes.rounds)
            ]
            by_name[name] = [(points[0][0], median(y for _, y in points)) for points in zip(*runs, strict=True)]
        rows = {
            f"turn {turn:g}": {"reused_ms": reused, "anew_ms": anew, "saved": 1 - reused / anew}
            for (turn, reused), (_, anew) in zip(by_name["blocks reused"], by_name["computed anew"], strict=True)
        }
        plot = line_chart(
            f"A conversation: {sizes.ask_tokens} tokens asked, {sizes.answer_tokens} answered a turn",
            x_label="turn",
            y_label="ms to the first token",
            series=[Series(name=name, points=points) for name, points in by_name.items()],
        )
        return Outcome(rows, plot, by_name)

    def kv_memory(self) -> Outcome:
        """Memory per token of context against the formula."""
        sizes = self._sizes
        expected = self._bytes_per_token()
        points = kv_memory.growth(
            self._open(),
            num_sequences=sizes.memory_sequences,
            tokens_each=sizes.memory_tokens,
            vocab_size=self._vocab_size,
        )
        measured = kv_memory.slope(points)
        rows = {
            "bytes per token": {"measured": measured, "formula": expected, "measured / formula": measured / expected}
        }
        megabytes = [(tokens, grown / 1e6) for tokens, grown in points]
        formula = [(0.0, 0.0), (points[-1][0], points[-1][0] * expected / 1e6)]
        plot = line_chart(
            "Memory of the context",
            x_label="tokens of context",
            y_label="MB",
            series=[
                Series(name=f"formula: {expected:,.0f} bytes a token", points=formula),
                Series(name="growth of the process", points=megabytes, dots=True),
            ],
        )
        return Outcome(rows, plot, {"grown_bytes": points})

    def long_prompt(self) -> Outcome:
        """Gaps of running streams while a long prompt is prefilled."""
        sizes = self._sizes
        found = long_prompt.disturb(
            self._open(),
            num_streams=sizes.num_streams,
            quiet_steps=sizes.quiet_steps,
            prompt_tokens=sizes.prompt_tokens,
            max_tokens=sizes.stream_tokens,
            vocab_size=self._vocab_size,
        )
        rows = {
            f"{sizes.num_streams} streams beside a prompt of {sizes.prompt_tokens} tokens": {
                "before_ms": found.before_ms,
                "beside_p50_ms": median(found.during_ms),
                "slowdown_p50": found.slowdown(0.5),
                "slowdown_p95": found.slowdown(0.95),
                "slowdown_p99": found.slowdown(0.99),
                "prefill_s": found.ended_s - found.began_s,
            }
        }
        plot = line_chart(
            f"A running stream beside a prompt of {sizes.prompt_tokens:,} tokens (shaded)",
            x_label="seconds",
            y_label="ms since the token before",
            series=[Series(name=f"one of {sizes.num_streams} streams", points=found.gaps, dots=True)],
            shaded=(found.began_s, found.ended_s),
        )
        return Outcome(rows, plot, {})

    def _open(self, **changes: Any) -> Engine:
        return Engine(replace(self._config, **changes), self._model_dir)

    def _bytes_per_token(self) -> float:
        if self._config.dtype == "int8":
            from axon.engine.native.model import block_bytes

            return block_bytes(self._architecture) / self._config.block_size
        import torch

        from axon.engine.pytorch.kv_memory import block_bytes as torch_block_bytes

        dtype = getattr(torch, self._config.dtype)
        return torch_block_bytes(self._architecture, self._config.block_size, dtype) / self._config.block_size


PARTS: dict[str, Callable[[Bench], Outcome]] = {
    "kv_memory": Bench.kv_memory,  # first, while the process is small
    "kv_cache": Bench.kv_cache,
    "conversation": Bench.conversation,
    "long_prompt": Bench.long_prompt,
    "batching": Bench.batching,
}


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[Bench]:
    """The default model on the native kernels; the smallest run has a tiny random model in float32."""
    if not options.smoke:
        config = EngineConfig(dtype=options.dtype, threads=options.threads, max_sequences=BATCH_SIZE)
        yield Bench(_default_model(), config, Sizes())
        return
    from tests.engine.builders import make_tiny_llama

    with tempfile.TemporaryDirectory() as folder:
        config = EngineConfig(
            dtype="float32", threads=1, max_sequences=BATCH_SIZE, kv_memory_bytes=16 << 20, max_batch_tokens=256
        )
        yield Bench(make_tiny_llama(Path(folder) / "tiny"), config, SMOKE)


def _default_model() -> Path:
    from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted

    if not is_converted(default_gguf(), MODEL_DIR):
        convert_gguf(default_gguf(), MODEL_DIR)
    return MODEL_DIR


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--dtype", choices=("int8", "float32", "bfloat16"), default="int8")
    parser.add_argument("--threads", type=int, default=usable_cores())
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run, on a tiny random model; keeps nothing")
    return parser.parse_args()


def run(options: argparse.Namespace) -> dict[str, Outcome]:
    """The parts one after the other, each told when it is done."""
    outcomes: dict[str, Outcome] = {}
    with opened(options) as bench:
        print(
            f"seed {SEED}, {options.threads} threads, {'a tiny model' if options.smoke else options.dtype}", flush=True
        )
        for name in PARTS:
            if name in options.only:
                outcomes[name] = PARTS[name](bench)
                print(table({f"{name}: {row}": figures for row, figures in outcomes[name].rows.items()}), flush=True)
    return outcomes


def main() -> None:
    options = parse()
    report = Report("engine", options)
    outcomes = run(options)
    figures = {f"{name}: {row}": each for name, outcome in outcomes.items() for row, each in outcome.rows.items()}
    if report.is_kept:
        PLOTS.mkdir(exist_ok=True)
        for name, outcome in outcomes.items():
            (PLOTS / f"{name.replace('_', '-')}.svg").write_text(outcome.plot)
    report.end(
        {
            "figures": rounded(figures),
            "points": {
                name: {series: _rounded(points) for series, points in outcome.points.items()}
                for name, outcome in outcomes.items()
            },
        }
    )


def _rounded(points: list[Point]) -> list[list[float]]:
    return [[x, float(f"{y:.4g}")] for x, y in points]


if __name__ == "__main__":
    main()
