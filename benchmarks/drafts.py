"""What a draft model brings: tokens/s with it against without it, by how often its drafts are right and by streams.

python -m benchmarks.drafts                      a table, and one JSON line last
python -m benchmarks.drafts --rounds 3 --streams 1 4 --drafts equal blurred
python -m benchmarks.drafts --smoke              tiny models, for tests
python -m benchmarks.drafts --head FOLDER --save     a draft head of the default model against no drafts at all

There is one real small model here, the default one, so targets and drafts are made from it. The target is the default
model with idle layers behind its own, which add zeros: it says the same and costs as much as a model of so many layers.
Drafts are the default model itself (``equal``, always right), with noise on its weights (``blurred``, ``noisy``: often
and seldom right), its first layers alone (``cut``), and random weights (``random``, never right). Lookup is on in both
engines, so the ratio is what the draft model adds. Each round asks the same prompts of both, by turns, after two rounds
that are not counted; the median of the rounds' ratios counts, of their time and of their CPU time. Answers must be the
same, token for token.

With ``--head`` the target is the default model as it is, and the engine with head and lookup runs by turns with one
that drafts nothing, on chats and on text that repeats itself. The geometric mean of the ratios counts, with its 95
percent interval.
"""

import argparse
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from benchmarks.measures.corpus import read_corpus  # noqa: E402
from benchmarks.measures.figures import Figures, rounded, table  # noqa: E402
from benchmarks.measures.layered_model import blurred, cut, deepened, scrambled  # noqa: E402
from benchmarks.measures.machine import load_average, machine  # noqa: E402
from benchmarks.measures.pairs import batch_chart, interval, speed_chart  # noqa: E402

SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
REPEATED = 6
"""Times that a text stands in a prompt that the model goes on repeating."""
MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
Make = Callable[[Path, Path], Path]
"""Makes a model folder out of another one."""
DRAFTS: Mapping[str, Make] = {
    "equal": lambda source, folder: source,
    "blurred": lambda source, folder: blurred(source, folder, 0.15),
    "noisy": lambda source, folder: blurred(source, folder, 0.22),
    "cut": lambda source, folder: cut(source, folder, 12),
    "random": lambda source, folder: scrambled(source, folder),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is run."""

    added_layers: int = 90
    num_tokens: int = 96
    rounds: int = 5
    warm_rounds: int = 2
    streams: tuple[int, ...] = (1, 2, 4, 8)
    temperature: float = 0.0


DEFAULT = Sizes()


@dataclass(frozen=True, slots=True)
class Round:
    """Answers to the same prompts, and what they took."""

    tokens: dict[str, list[int]]
    seconds: float
    cpu_s: float
    """CPU time of this process, all threads: steadier than ``seconds`` where others use the cores."""
    num_drafted: int
    num_accepted: int


def ask(engine: Engine, prompts: list[list[int]], sizes: Sizes, name: str) -> Round:
    """Asks all prompts at once, to the last token."""
    before = engine.step().counters
    sampling = Sampling(max_tokens=sizes.num_tokens, temperature=sizes.temperature, ignore_eos=True)
    started, cpu_before = time.perf_counter(), time.process_time()
    for index, prompt_ids in enumerate(prompts):
        engine.add(Add(id=str(index), prompt_ids=prompt_ids, sampling=sampling, seed=index, tenant=name))
    tokens: dict[str, list[int]] = {str(index): [] for index in range(len(prompts))}
    while engine.has_work:
        for emitted in engine.step().emitted:
            tokens[emitted.id].append(emitted.token)
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu_before
    after = engine.step().counters
    num_drafted = after.model_drafted - before.model_drafted
    return Round(tokens, seconds, cpu_s, num_drafted, after.model_accepted - before.model_accepted)


def compare(plain: Engine, drafting: Engine, prompts: list[list[int]], num_streams: int, sizes: Sizes) -> Figures:
    """The median of ratios over rounds of other prompts each, with what was drafted."""
    ratios, cpu_ratios, speeds, drafted, accepted = list[float](), list[float](), list[float](), 0, 0
    for number in range(-sizes.warm_rounds, sizes.rounds):
        asked = [prompts[(number * num_streams + index) % len(prompts)] for index in range(num_streams)]
        name = f"{num_streams} {number}"  # a tenant of its own: no round finds another's blocks
        pair = [(engine, ask(engine, asked, sizes, name)) for engine in _by_turns(plain, drafting, number)]
        without, with_draft = (next(found for engine, found in pair if engine is each) for each in (plain, drafting))
        assert with_draft.tokens == without.tokens, "drafts have changed a token"
        if number < 0:
            continue
        ratios.append(without.seconds / with_draft.seconds)
        cpu_ratios.append(without.cpu_s / with_draft.cpu_s)
        speeds.append(num_streams * sizes.num_tokens / without.seconds)
        drafted, accepted = drafted + with_draft.num_drafted, accepted + with_draft.num_accepted
    return {
        "ratio": median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "cpu_ratio": median(cpu_ratios),
        "tokens_per_s_without": median(speeds),
        "acceptance": accepted / drafted if drafted else 0.0,
        "drafts_per_token": drafted / (sizes.rounds * num_streams * sizes.num_tokens),
    }


def _by_turns(plain: Engine, drafting: Engine, number: int) -> tuple[Engine, Engine]:
    return (plain, drafting) if number % 2 else (drafting, plain)


def prepare_default() -> tuple[Path, list[list[int]]]:
    """The default model, and prompts that people write."""
    from axon.text.tokenizer import load_tokenizer

    if not is_converted(default_gguf(), MODEL_DIR):
        MODEL_DIR.parent.mkdir(parents=True, exist_ok=True)
        convert_gguf(default_gguf(), MODEL_DIR)
    tokenizer = load_tokenizer(MODEL_DIR)
    form = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    texts = [message.text for message in read_corpus() if message.language == "en" and len(message.text) < 200]
    return MODEL_DIR, [tokenizer.encode(form.format(text), parse_special=True) for text in texts]


def prepare_tiny(folder: Path) -> tuple[Path, list[list[int]]]:
    """A tiny random model, and random prompts."""
    from tests.engine.builders import make_tiny_llama

    from benchmarks.measures.drive import make_prompt_ids

    return make_tiny_llama(folder), [make_prompt_ids(str(index), 12, 256) for index in range(8)]


def measure(source: Path, prompts: list[list[int]], names: list[str], config: EngineConfig, sizes: Sizes) -> Any:
    """The figures of each draft model by the number of streams."""
    found: dict[str, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="axon-drafts-") as work:
        target = deepened(source, Path(work) / "target", sizes.added_layers)
        plain = Engine(config, target)
        for name in names:
            draft = DRAFTS[name](source, Path(work) / name)
            drafting = Engine(replace(config, draft_model=str(draft)), target)
            found[name] = {f"{num} streams": compare(plain, drafting, prompts, num, sizes) for num in sizes.streams}
            drafting.close()
            print(f"\n{name}\n{table(found[name])}", flush=True)
        plain.close()
    return found


def prepare_texts() -> tuple[Path, dict[str, list[list[int]]]]:
    """The default model, and prompts of two kinds: chats, and texts that repeat themselves."""
    from axon.text.tokenizer import load_tokenizer

    folder, _ = prepare_default()
    tokenizer = load_tokenizer(folder)
    texts = [message.text for message in read_corpus() if message.language == "en" and len(message.text) < 400]
    form = f"{SYSTEM}<|im_start|>user\n{{}}<|im_end|>\n<|im_start|>assistant\n"
    chats = [tokenizer.encode(form.format(text), parse_special=True) for text in texts]
    return folder, {"chat": chats, "repetitive": [tokenizer.encode(f"{text}\n" * REPEATED) for text in texts]}


def compare_head(plain: Engine, drafting: Engine, prompts: list[list[int]], num_streams: int, sizes: Sizes) -> Figures:
    """The ratio of interleaved pairs, with what the head drafted."""
    ratios, cpu_ratios, speeds, drafted, accepted = list[float](), list[float](), list[float](), 0, 0
    for number in range(-sizes.warm_rounds, sizes.rounds):
        first = number * num_streams * 7
        asked = [prompts[(first + 7 * index) % len(prompts)] for index in range(num_streams)]
        name = f"{num_streams} {number}"
        pair = {engine: ask(engine, asked, sizes, name) for engine in _by_turns(plain, drafting, number)}
        assert pair[drafting].tokens == pair[plain].tokens, "drafts have changed a token"
        if number >= 0:
            ratios.append(pair[plain].seconds / pair[drafting].seconds)
            cpu_ratios.append(pair[plain].cpu_s / pair[drafting].cpu_s)
            speeds.append(num_streams * sizes.num_tokens / pair[plain].seconds)
            drafted, accepted = drafted + pair[drafting].num_drafted, accepted + pair[drafting].num_accepted
    return {
        **interval(ratios),
        "cpu_ratio": median(cpu_ratios),
        "tokens_per_s_without": median(speeds),
        "acceptance": accepted / drafted if drafted else 0.0,
        "drafts_per_token": drafted / (sizes.rounds * num_streams * sizes.num_tokens),
    }


def measure_head(
    source: Path, head: str, texts: Mapping[str, list[list[int]]], config: EngineConfig, sizes: Sizes
) -> dict[str, dict[int, Figures]]:
    """The figures of a head by kind of text and number of streams."""
    found: dict[str, dict[int, Figures]] = {}
    plain, drafting = (
        Engine(replace(config, speculate=False), source),
        Engine(replace(config, draft_model=head), source),
    )
    for kind, prompts in texts.items():
        found[kind] = {}
        for num in sizes.streams:
            found[kind][num] = compare_head(plain, drafting, prompts, num, sizes)
            print(f"{kind}\n{table({f'{num} streams': found[kind][num]})}", flush=True)
    plain.close()
    drafting.close()
    return found


def main_head(options: argparse.Namespace, config: EngineConfig, sizes: Sizes) -> dict[str, Any]:
    """Measures a head, and keeps its figures and plots where that is asked for."""
    source, texts = prepare_texts()
    chosen = {kind: prompts for kind, prompts in texts.items() if kind in options.texts}
    found = measure_head(source, options.head, chosen, config, sizes)
    if options.save:
        plots = ROOT / "docs" / "plots"
        (plots / "draft-head-streams.svg").write_text(batch_chart("A draft head, by streams", found))
        (plots / "draft-head-acceptance.svg").write_text(speed_chart("A draft head, by drafts accepted", found))
    return {kind: rounded({str(num): each for num, each in rows.items()}) for kind, rows in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=DEFAULT.rounds)
    parser.add_argument("--tokens", type=int, default=DEFAULT.num_tokens)
    parser.add_argument("--layers", type=int, default=DEFAULT.added_layers, help="idle layers behind the target's own")
    parser.add_argument("--streams", type=int, nargs="*", default=DEFAULT.streams)
    parser.add_argument("--drafts", choices=list(DRAFTS), nargs="*", default=list(DRAFTS))
    parser.add_argument("--temperature", type=float, default=DEFAULT.temperature)
    parser.add_argument("--dtype", choices=["int8", "float32"], default="int8")
    parser.add_argument("--head", default="", help="folder of a draft head of the default model")
    parser.add_argument("--texts", choices=["chat", "repetitive"], nargs="*", default=["chat", "repetitive"])
    parser.add_argument("--save", action="store_true", help="keep the plots of a head")
    parser.add_argument("--smoke", action="store_true", help="tiny models: whether it runs, not how fast")
    options = parser.parse_args()
    command = f"python -m benchmarks.drafts {shlex.join(sys.argv[1:])}".rstrip()
    report: dict[str, Any] = {"benchmark": "drafts", "machine": machine(), "load_before": load_average()}
    print(f"{command}\n{report['machine']}, load {report['load_before']}", flush=True)
    sizes = Sizes(
        added_layers=options.layers,
        num_tokens=options.tokens,
        rounds=options.rounds,
        streams=tuple(options.streams),
        temperature=options.temperature,
    )
    config = EngineConfig(dtype=options.dtype, device="cpu", kv_memory_bytes=512 << 20)
    if options.head:
        report |= {"command": command, "head": main_head(options, config, replace(sizes, warm_rounds=1))}
        report["load_after"] = load_average()
        print(json.dumps(report), flush=True)
        return 0
    if options.smoke:
        sizes = Sizes(added_layers=1, num_tokens=6, rounds=1, warm_rounds=1, streams=(1, 2))
        with tempfile.TemporaryDirectory() as folder:
            source, prompts = prepare_tiny(Path(folder) / "tiny")
            config = EngineConfig(dtype="float32", device="cpu", threads=1, kv_memory_bytes=2 << 20)
            found = measure(source, prompts, ["equal", "blurred", "random"], config, sizes)
    else:
        source, prompts = prepare_default()
        found = measure(source, prompts, options.drafts, config, sizes)
    report |= {"command": command, "drafts": {name: rounded(rows) for name, rows in found.items()}}
    report["load_after"] = load_average()
    print(json.dumps(report), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
