"""Drafts on one GPU: tokens/s with them against without, by how often they are right and by streams. Random weights.

python benchmarks/drafts_gpu.py                        8B's shape; a table, and one JSON line last
python benchmarks/drafts_gpu.py --dtype fp8            the target in fp8
python benchmarks/drafts_gpu.py --useless --rounds 12  only drafts that never help, and how far the ratio can be trusted
python benchmarks/drafts_gpu.py --save FOLDER          also keeps the JSON there
python benchmarks/drafts_gpu.py --plot RESULT          draws a kept result in docs/plots, without a GPU
python benchmarks/drafts_gpu.py --seconds 60           leaves out what finds no time; 115 by default

The draft model is the target's first two layers with its embedding and head. The target's other layers are scaled down
step by step, in place: the less they add, the more often the draft model is right, from never to always, while the
time of a step stays the same. Text for lookup repeats by construction: the head is changed so that ids 0 to 63 follow
each other in a circle. One engine runs everything, by turns without drafts and with them, as its own controller decides
(greedy). A ratio is the median over rounds. Where drafts do not help, it must not be below 0.98, and with ``--useless``
the 95 percent interval of the rounds' geometric mean must be above 0.97.
"""

import argparse
import gc
import json
import platform
import random
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from axon.engine.schedule.limits.controller import ExpectedDrafts  # noqa: E402
from axon.engine.schedule.limits.device_drafts import DeviceDrafts  # noqa: E402
from axon.engine.schedule.limits.feedback_controller import FeedbackController  # noqa: E402
from benchmarks.engine_gpu import SHAPES  # noqa: E402
from benchmarks.measures.pairs import batch_chart, interval, speed_chart  # noqa: E402
from benchmarks.measures.random_weights import RandomWeights  # noqa: E402

DRAFT_LAYERS = 2
SCALES = (1.0, 0.1, 0.03, 0.0)
"""What the layers behind the draft model's are multiplied with, one after the other."""
STREAMS = (1, 4, 16, 32)
CIRCLE = 64
NUM_PROMPT, NUM_TOKENS = 128, 96
MOST_DRAFTED = 16
"""Streams up to which the draft model is measured."""
_LAST_S = 25.0
"""Seconds that are kept for the last rows."""
Asked = tuple[float, dict[str, list[int]], tuple[int, int]]
"""Seconds, each stream's tokens, drafts made and accepted."""


class NamedWeights(RandomWeights):
    """The same numbers for the same name, whatever was made before: models share their first layers."""

    def take(self, name: str) -> torch.Tensor:
        self._generator.manual_seed(zlib.crc32(name.encode()))
        return super().take(name)


@dataclass
class Bench:
    """One engine with a draft model, and what is known so far."""

    engine: Engine
    ends_at: float
    rounds: int
    report: dict[str, Any]
    folder: Path | None
    draft_tokens: int
    num_asked: int = 0

    def has_time(self, kept_s: float) -> bool:
        return time.perf_counter() + kept_s < self.ends_at

    def keep(self, row: dict[str, Any]) -> None:
        """Prints a row and saves what is known: a run that is cut short loses nothing."""
        self.report["rows"].append(row)
        low, high = row["interval"]
        print(
            f"{row['what']:34} {row['streams']:>3} streams  ratio {row['ratio']:.3f} ({row['least']:.3f} to "
            f"{row['most']:.3f}; 95 % {low:.3f} to {high:.3f})  without {row['without']:>8,.0f} tokens/s  with "
            f"{row['with']:>8,.0f}  right {row['acceptance']:.2f}  drafts a token {row['drafts_per_token']:.2f}  "
            f"same text {row['same']:.2f}",
            flush=True,
        )
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"drafts-gpu-{self.report['name']}-{self.report['date'][:10]}.json"
            (self.folder / name).write_text(json.dumps(self.report, indent=1) + "\n")

    def ask(self, prompts: list[list[int]], num_tokens: int = NUM_TOKENS) -> Asked:
        """All prompts at once, to the last token; the time is that from the first token of the last on."""
        self.num_asked += 1
        before = self.engine.step().counters
        sampling = Sampling(max_tokens=num_tokens, temperature=0.0, ignore_eos=True)
        for index, prompt in enumerate(prompts):
            tenant = f"round {self.num_asked}"  # finds no cached block
            self.engine.add(Add(id=str(index), prompt_ids=prompt, sampling=sampling, seed=index, tenant=tenant))
        tokens: dict[str, list[int]] = {str(index): [] for index in range(len(prompts))}
        started = 0.0
        while self.engine.has_work:
            for emitted in self.engine.step().emitted:
                tokens[emitted.id].append(emitted.token)
            if not started and all(tokens.values()):
                started = time.perf_counter()
        seconds = time.perf_counter() - started
        self.engine.check()
        after = self.engine.step().counters
        drafted = after.drafted + after.model_drafted - before.drafted - before.model_drafted
        accepted = after.accepted + after.model_accepted - before.accepted - before.model_accepted
        return seconds, tokens, (drafted, accepted)

    def compare(self, what: str, num_streams: int, *, lookup: bool, prompts: Any, more: dict[str, Any]) -> None:
        """Rounds of the same prompts by turns without drafts and with them; the first pair warms up."""
        plain = FeedbackController(max_prefill_tokens=8192, slo_s=1e9)
        drafts = DeviceDrafts(draft_tokens=0 if lookup else self.draft_tokens)
        drafting = FeedbackController(max_prefill_tokens=8192, slo_s=1e9, drafts=drafts)
        ratios, speeds, counts, same = list[float](), list[tuple[float, float]](), [0, 0], list[float]()
        with lookups(self.engine, on=lookup):
            for number in range(-1, self.rounds):
                asked: dict[bool, Asked] = {}
                for with_drafts in (False, True) if number % 2 else (True, False):
                    self.engine._controller = drafting if with_drafts else plain
                    asked[with_drafts] = self.ask(prompts(number, num_streams))
                if number < 0:
                    continue
                (off_s, off, _), (on_s, on, (drafted, accepted)) = asked[False], asked[True]
                total = num_streams * (NUM_TOKENS - 1)
                ratios.append(off_s / on_s)
                speeds.append((total / off_s, total / on_s))
                counts[0] += drafted
                counts[1] += accepted
                same.append(sum(off[id] == on[id] for id in off) / len(off))
        trust = interval(ratios)
        self.keep(
            {
                "what": what,
                "streams": num_streams,
                "ratio": round(median(ratios), 4),
                "least": round(min(ratios), 4),
                "most": round(max(ratios), 4),
                "ratios": [round(each, 4) for each in ratios],
                "interval": [round(trust["low"], 4), round(trust["high"], 4)],
                "without": round(median(off for off, _ in speeds), 1),
                "with": round(median(on for _, on in speeds), 1),
                "acceptance": round(counts[1] / counts[0], 4) if counts[0] else 0.0,
                "drafts_per_token": round(counts[0] / (self.rounds * num_streams * NUM_TOKENS), 3),
                "same": round(min(same), 3),
                **more,
            }
        )


@contextmanager
def lookups(engine: Engine, *, on: bool) -> Iterator[None]:
    """Without lookups, what the draft model brings is seen by itself."""
    drafting: Any = engine._scheduler.drafting
    if not on:
        drafting._look_up = lambda *_: []
        drafting.expected_lookups = lambda *_: ExpectedDrafts()
    try:
        yield
    finally:
        if not on:
            del drafting._look_up, drafting.expected_lookups


def open_engine(shape: str, dtype: str, draft_tokens: int) -> Engine:
    """An engine with a draft model, both of folders that have a config and no weights."""

    @contextmanager
    def open_weights(model_dir: Path, dtype: torch.dtype) -> Iterator[Any]:
        yield NamedWeights(json.loads((model_dir / "config.json").read_text()), dtype)

    with tempfile.TemporaryDirectory() as root:
        target, draft = Path(root) / "target", Path(root) / "draft"
        for folder, layers in ((target, SHAPES[shape]["num_hidden_layers"]), (draft, DRAFT_LAYERS)):
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(SHAPES[shape] | {"num_hidden_layers": layers}))
        config = EngineConfig(
            device="cuda",
            dtype=dtype,  # type: ignore[arg-type]
            max_sequences=64,
            max_batch_tokens=8192,
            kv_memory_bytes=6 << 30,
            adapter_slots=0,
            draft_model=str(draft),
            draft_tokens=draft_tokens,
        )
        return Engine(config, target, open_weights)


@torch.inference_mode()
def scale_layers(engine: Engine, factor: float) -> None:
    """Multiplies what the target's layers behind the draft model's add; the graphs read the same memory."""
    for layer in engine._runner.model._layers[DRAFT_LAYERS:]:  # type: ignore[attr-defined]
        for matrix in (layer.output, layer.down):
            (matrix.values if matrix.scales is None else matrix.scales).mul_(factor)
    torch.cuda.synchronize()


@torch.inference_mode()
def close_circle(engine: Engine) -> None:
    """Has id n+1 follow id n for the first ids, in the target; its layers must add little."""
    model: Any = engine._runner.model  # type: ignore[attr-defined]
    ids = torch.arange(CIRCLE, device=model.device)
    model._head.values[ids] = model._embedding[(ids - 1) % CIRCLE] * 4
    torch.cuda.synchronize()


def random_prompts(number: int, count: int) -> list[list[int]]:
    numbers = random.Random(1000 * number + count)
    return [numbers.choices(range(100, 10_000), k=NUM_PROMPT) for _ in range(count)]


def round_prompts(number: int, count: int) -> list[list[int]]:
    """Texts that go round in the circle, each from another place."""
    return [[(number + 7 * index + place) % CIRCLE for place in range(NUM_PROMPT)] for index in range(count)]


def run_useless(bench: Bench, streams: list[int]) -> None:
    """Drafts that are never right. The lookups come last, so that no row of theirs is the first after the start."""
    for count in streams:
        more = {"kind": "useless", "scale": SCALES[0]}
        bench.compare(f"draft model, layers x {SCALES[0]}", count, lookup=False, prompts=random_prompts, more=more)
    for count in streams:
        bench.compare(
            "lookup, text that never repeats", count, lookup=True, prompts=random_prompts, more={"kind": "useless"}
        )


def run(bench: Bench, streams: list[int]) -> None:
    left_out: list[str] = []

    def row(what: str, count: int, *, lookup: bool, prompts: Any, kept_s: float = 0.0, **more: Any) -> None:
        if bench.has_time(kept_s):
            bench.compare(what, count, lookup=lookup, prompts=prompts, more=more)
        else:
            left_out.append(f"{what}, {count} streams")

    for count in streams:
        row("lookup, text that never repeats", count, lookup=True, prompts=random_prompts, kind="useless")
    present = 1.0
    for scale in SCALES:
        scale_layers(bench.engine, scale / present)
        present = scale
        kind = "useless" if scale == SCALES[0] else "draft model"
        kept_s = 0.0 if scale in (SCALES[0], SCALES[-1]) else _LAST_S
        how: dict[str, Any] = {"lookup": False, "prompts": random_prompts, "kind": kind, "scale": scale}
        for count in (count for count in streams if count <= MOST_DRAFTED):
            row(f"draft model, layers x {scale}", count, kept_s=kept_s, **how)
    close_circle(bench.engine)
    for count in streams:
        row("lookup, text that repeats", count, lookup=True, prompts=round_prompts, kind="repeats")
    bench.report["left_out"] = left_out
    if left_out:
        print(f"no time was left for {len(left_out)}: {'; '.join(left_out)}")


def plot(report: dict[str, Any], folder: Path) -> None:
    """Draws the speed-up by the drafts accepted, a colour for each number of streams, and by streams."""
    by_streams: dict[str, dict[int, Any]] = {}
    by_text: dict[str, dict[int, Any]] = {}
    for number, row in enumerate(report["rows"]):
        by_streams.setdefault(f"{row['streams']}", {})[number] = row
        by_text.setdefault(_label(row), {})[row["streams"]] = row
    name = f"drafts-gpu-{report['name']}"
    title = f"Drafts on a GPU, {report['name']}"
    (folder / f"{name}-acceptance.svg").write_text(speed_chart(f"{title}, by drafts accepted and streams", by_streams))
    (folder / f"{name}-streams.svg").write_text(batch_chart(f"{title}, by streams", by_text))


def _label(row: dict[str, Any]) -> str:
    """A few letters for a plot: what guesses, and for a draft model what the target's other layers are scaled with."""
    if "scale" in row:
        return f"model, {row['scale']:g}"
    return "lookup, repeats" if row["kind"] == "repeats" else "lookup"


def judge(rows: list[dict[str, Any]], *, intervals: bool) -> list[str]:
    """What falls short of what is promised; ``intervals``: the rounds are many enough to judge their interval."""
    found = [f"{row['what']}, {row['streams']}: {row['ratio']}" for row in rows if row["ratio"] < 0.98]
    if intervals:
        found += [
            f"{row['what']}, {row['streams']}: from {row['interval'][0]} on"
            for row in rows
            if row["interval"][0] <= 0.97
        ]
    repeats = [row for row in rows if row["kind"] == "repeats" and row["streams"] == 1]
    found += [f"repetitive text at one stream: {row['ratio']} < 2" for row in repeats if row["ratio"] < 2]
    found += [
        f"{row['what']}, {row['streams']}: another text" for row in rows if row["kind"] == "repeats" and row["same"] < 1
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=["8b", "0.6b"], default="8b")
    parser.add_argument("--dtype", choices=["bfloat16", "fp8"], default="bfloat16")
    parser.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    parser.add_argument("--draft-tokens", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--useless", action="store_true", help="only drafts that never help")
    parser.add_argument("--seconds", type=float, default=115.0)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.plot:
        plot(json.loads(options.plot.read_text()), ROOT / "docs" / "plots")
        return
    if not torch.cuda.is_available():
        print("drafts_gpu needs an NVIDIA GPU, and there is none")
        return
    started = time.perf_counter()
    report: dict[str, Any] = {
        "benchmark": "drafts_gpu",
        "name": f"{options.shape}-{options.dtype}",
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "rows": [],
    }
    print(f"{report['command']}\n{report['device']}, torch {report['torch']}", flush=True)
    engine = open_engine(options.shape, options.dtype, options.draft_tokens)
    opened_s = time.perf_counter() - started
    while engine.tend():  # records the graphs that would follow between steps
        pass
    gc.collect()
    gc.freeze()
    print(
        f"opened in {opened_s:.1f} s, graphs recorded after {time.perf_counter() - started:.1f} s; "
        f"{engine.ready().num_blocks} blocks",
        flush=True,
    )
    bench = Bench(engine, started + options.seconds, options.rounds, report, options.save, options.draft_tokens)
    (run_useless if options.useless else run)(bench, options.streams)
    report["falls_short"] = judge(report["rows"], intervals=options.useless)
    print("\n".join(report["falls_short"]) or "nothing falls short")
    engine.close()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
