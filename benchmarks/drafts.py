"""What a draft model brings: tokens/s with it against without it, by how often its drafts are right and by streams.

python -m benchmarks.drafts                      a table, and one JSON line last
python -m benchmarks.drafts --turns 20 --streams 1 4 --drafts equal blurred
python -m benchmarks.drafts --smoke              tiny models, for tests
python -m benchmarks.drafts --head FOLDER --save     a draft head of the default model against no drafts at all

There is one real small model here, the default one, so targets and drafts are made from it. The target is the default
model with idle layers behind its own, which add zeros: it says the same and costs as much as a model of so many layers.
Drafts are the default model itself (``equal``, always right), with noise on its weights (``blurred``, ``noisy``: often
and seldom right), its first layers alone (``cut``), and random weights (``random``, never right). Lookup is on in both
engines, so the ratio is what the draft model adds.

With ``--head`` the target is the default model as it is, and the engine with head and lookup runs by turns with one
that drafts nothing, on chats and on text that repeats itself.

Two engines answer the same prompts by turns of ``--steps`` steps; where an answer ends, the next one begins. The
geometric mean of the turns' ratios of tokens a second counts, with its 95 percent interval; one turn of each is not
counted. Answers must be the same, token for token. Ends with 1 where drafts make something slower: where all of an
interval is below 0.97.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted  # noqa: E402
from benchmarks.measures.corpus import read_corpus  # noqa: E402
from benchmarks.measures.figures import Figures, rounded, table  # noqa: E402
from benchmarks.measures.layered_model import blurred, cut, deepened, scrambled  # noqa: E402
from benchmarks.measures.pairs import batch_chart, interval, speed_chart  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.measures.turns import Streams, Turn  # noqa: E402

SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
REPEATED = 6
"""Times that a text stands in a prompt that the model goes on repeating."""
MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
LEAST_RATIO = 0.97
"""Drafts that do not help may cost so much."""
Found = dict[str, dict[int, Figures]]
"""Figures by the draft model or the kind of text, and by the number of streams."""
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
    turns: int = 12
    num_steps: int = 150
    streams: tuple[int, ...] = (1, 2, 4, 8)
    temperature: float = 0.0


DEFAULT = Sizes()


def compare(plain: Engine, drafting: Engine, prompts: list[list[int]], num_streams: int, sizes: Sizes) -> Figures:
    """The ratio of turns with drafts and without, with what was drafted."""
    sampling = Sampling(max_tokens=sizes.num_tokens, temperature=sizes.temperature, ignore_eos=True)
    without, with_drafts = (Streams(engine, prompts, num_streams, sampling) for engine in (plain, drafting))
    pairs: list[tuple[Turn, Turn]] = []
    for number in range(1 + sizes.turns):
        order = (without, with_drafts) if number % 2 else (with_drafts, without)
        turn = {streams: streams.run(sizes.num_steps) for streams in order}
        pairs.append((turn[without], turn[with_drafts]))
    answers, others = without.close(), with_drafts.close()
    assert all(answers[id] == others[id] for id in answers.keys() & others.keys()), "drafts have changed a token"
    counted = pairs[1:]
    num_drafted, num_tokens = sum(each.num_drafted for _, each in counted), sum(each.num_tokens for _, each in counted)
    return {
        **interval([_speed(each) / _speed(plain_turn) for plain_turn, each in counted]),
        "cpu_ratio": median(
            each.num_tokens / each.cpu_s * plain_turn.cpu_s / plain_turn.num_tokens for plain_turn, each in counted
        ),
        "tokens_per_s_without": median(_speed(plain_turn) for plain_turn, _ in counted),
        "acceptance": sum(each.num_accepted for _, each in counted) / num_drafted if num_drafted else 0.0,
        "drafts_per_token": num_drafted / num_tokens,
        "answers_compared": len(answers.keys() & others.keys()),
    }


def _speed(turn: Turn) -> float:
    return turn.num_tokens / turn.seconds


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


def measure(source: Path, prompts: list[list[int]], names: list[str], config: EngineConfig, sizes: Sizes) -> Found:
    """The figures of each draft model by the number of streams."""
    found: dict[str, dict[int, Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="axon-drafts-") as work:
        target = deepened(source, Path(work) / "target", sizes.added_layers)
        plain = Engine(config, target)
        for name in names:
            draft = DRAFTS[name](source, Path(work) / name)
            drafting = Engine(replace(config, draft_model=str(draft)), target)
            found[name] = {num: compare(plain, drafting, prompts, num, sizes) for num in sizes.streams}
            drafting.close()
            rows = {f"{num} streams": each for num, each in found[name].items()}
            print(f"\n{name}\n{table(rows)}", flush=True)
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


def measure_head(
    source: Path, head: str, texts: Mapping[str, list[list[int]]], config: EngineConfig, sizes: Sizes
) -> Found:
    """The figures of a head by kind of text and number of streams."""
    found: dict[str, dict[int, Figures]] = {}
    plain, drafting = (
        Engine(replace(config, speculate=False), source),
        Engine(replace(config, draft_model=head), source),
    )
    for kind, prompts in texts.items():
        found[kind] = {}
        for num in sizes.streams:
            found[kind][num] = compare(plain, drafting, prompts, num, sizes)
            print(f"{kind}\n{table({f'{num} streams': found[kind][num]})}", flush=True)
    plain.close()
    drafting.close()
    return found


def slower(found: Mapping[str, Mapping[int, Figures]]) -> list[str]:
    """Where drafts cost more than they may, as far as the intervals tell."""
    return [
        f"{name}, {num} streams: {each['ratio']:.3f}, at most {each['high']:.3f}"
        for name, rows in found.items()
        for num, each in rows.items()
        if each["high"] < LEAST_RATIO
    ]


def draw(found: Mapping[str, Mapping[int, Figures]], kind: str) -> None:
    """Draws the figures in docs/plots/."""
    plots, title = ROOT / "docs" / "plots", "A draft head" if kind == "draft-head" else "Draft models"
    (plots / f"{kind}-streams.svg").write_text(batch_chart(f"{title}, by streams", found))
    (plots / f"{kind}-acceptance.svg").write_text(speed_chart(f"{title}, by drafts accepted", found))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=DEFAULT.turns, help="of each engine that are counted")
    parser.add_argument("--steps", type=int, default=DEFAULT.num_steps, help="of a turn")
    parser.add_argument("--tokens", type=int, default=DEFAULT.num_tokens, help="of an answer")
    parser.add_argument("--layers", type=int, default=DEFAULT.added_layers, help="idle layers behind the target's own")
    parser.add_argument("--streams", type=int, nargs="*", default=DEFAULT.streams)
    parser.add_argument("--drafts", choices=list(DRAFTS), nargs="*", default=list(DRAFTS))
    parser.add_argument("--temperature", type=float, default=DEFAULT.temperature)
    parser.add_argument("--dtype", choices=["int8", "float32"], default="int8")
    parser.add_argument("--head", default="", help="folder of a draft head of the default model")
    parser.add_argument("--texts", choices=["chat", "repetitive"], nargs="*", default=["chat", "repetitive"])
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="tiny models: whether it runs, not how fast")
    return parser.parse_args()


def main() -> int:
    options = parse()
    report = Report("drafts", options)
    sizes = Sizes(
        added_layers=options.layers,
        num_tokens=options.tokens,
        turns=options.turns,
        num_steps=options.steps,
        streams=tuple(options.streams),
        temperature=options.temperature,
    )
    config = EngineConfig(dtype=options.dtype, device="cpu", kv_memory_bytes=512 << 20)
    if options.head:
        source, texts = prepare_texts()
        texts = {kind: prompts for kind, prompts in texts.items() if kind in options.texts}
        found = measure_head(source, options.head, texts, config, sizes)
    elif options.smoke:
        sizes = Sizes(added_layers=1, num_tokens=6, turns=2, num_steps=20, streams=(1, 2))
        with tempfile.TemporaryDirectory() as folder:
            source, prompts = prepare_tiny(Path(folder) / "tiny")
            config = EngineConfig(dtype="float32", device="cpu", threads=1, kv_memory_bytes=2 << 20)
            found = measure(source, prompts, ["equal", "blurred", "random"], config, sizes)
    else:
        source, prompts = prepare_default()
        found = measure(source, prompts, options.drafts, config, sizes)
    rows = {name: rounded({str(num): each for num, each in rows.items()}) for name, rows in found.items()}
    kind = "draft-head" if options.head else "draft-models"
    if report.is_kept:
        draw(found, kind)
    report.end({"head" if options.head else "drafts": rows}, called=kind)
    worse = [] if options.smoke else slower(found)
    for line in worse:
        print(f"slower with drafts: {line}", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
