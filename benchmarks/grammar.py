"""What a grammar costs: tokens/s and the time to the first token with a JSON schema and without, on the same engine.

python -m benchmarks.grammar                 the default model in int8 on these cores; one JSON line last
python -m benchmarks.grammar --rounds 3 --tokens 64
python -m benchmarks.grammar --speculate off the masks alone: without drafts, forced ones included

Each round runs the same prompts without a grammar and with the schema, by turns, so that a noisy moment hits both; the
median of the rounds' ratios counts. All answers have the same number of tokens: the schema is of a long array, and no
answer ends by itself. First tokens are timed on an idle engine, each with a schema that was never compiled before.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.core import EngineCore  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
GOAL_RATE, GOAL_FIRST_MS = 0.9, 10.0
TEXT = "Write a list of invented people, each with a name, an age, a few tags, and whether they are active. "


def schema(fresh: str = "") -> dict[str, Any]:
    """People; ``fresh`` makes it another schema."""
    properties = {
        "name": {"type": "string", "maxLength": 24},
        f"age{fresh}": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue", "loud", "quiet"]}, "maxItems": 3},
        "active": {"type": "boolean"},
        "note": {"type": "string"},
    }
    person = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"type": "array", "items": person, "minItems": 100}


def grammar(fresh: str = "") -> str:
    """The schema as a grammar, with no white space, as the server makes it."""
    from llguidance import LLMatcher

    made: str = LLMatcher.grammar_from_json_schema(json.dumps(schema(fresh)), overrides={"whitespace_flexible": False})
    return made


def drive(engine: EngineCore, adds: list[Add]) -> tuple[float, float, dict[str, list[int]]]:
    """Seconds to the first token and to the last one, and the tokens of each."""
    tokens: dict[str, list[int]] = {add.id: [] for add in adds}
    first_s = 0.0
    started = time.perf_counter()
    for add in adds:
        engine.add(add)
    while engine.has_work:
        output = engine.step()
        assert not output.refused, output.refused
        for emitted in output.emitted:
            first_s = first_s or time.perf_counter() - started
            tokens[emitted.id].append(emitted.token)
    return first_s, time.perf_counter() - started, tokens


def make_adds(
    prompts: list[list[int]], num_tokens: int, text: str, *, temperature: float = 1.0, name: str = ""
) -> list[Add]:
    """One sequence for each prompt, all with this grammar or, for an empty text, with none."""
    sampling = Sampling(max_tokens=num_tokens, temperature=temperature, ignore_eos=True, grammar=text)
    return [
        Add(id=f"{name}{index}", prompt_ids=prompt, sampling=sampling, seed=index, tenant=name)
        for index, prompt in enumerate(prompts)
    ]


def compare_rates(engine: EngineCore, prompts: list[list[int]], num_tokens: int, num_rounds: int) -> dict[str, Any]:
    """Tokens/s of all streams together, without a grammar and with the schema."""
    rates: dict[str, list[float]] = {"free": [], "schema": []}
    for turn in range(num_rounds + 1):
        for kind, text in (("free", ""), ("schema", grammar()))[:: 1 if turn % 2 else -1]:
            adds = make_adds(prompts, num_tokens, text, name=f"{kind}{turn}.")
            first_s, elapsed_s, tokens = drive(engine, adds)
            total = sum(map(len, tokens.values()))
            assert total == num_tokens * len(prompts), "an answer ended by itself"
            if turn:
                rates[kind].append((total - len(prompts)) / (elapsed_s - first_s))
    ratios = [bound / free for free, bound in zip(rates["free"], rates["schema"], strict=True)]
    return {
        "streams": len(prompts),
        "free_tokens_per_s": round(median(rates["free"]), 1),
        "schema_tokens_per_s": round(median(rates["schema"]), 1),
        "ratio": round(median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def compare_first(engine: EngineCore, prompt: list[int], num_rounds: int) -> dict[str, Any]:
    """Milliseconds to the first token of a prompt, without a grammar and with a schema never seen before."""
    first: dict[str, list[float]] = {"free": [], "schema": []}
    for turn in range(num_rounds + 1):
        for kind, text in (("free", ""), ("schema", grammar(f"_{turn}"))):
            adds = make_adds([prompt], 1, text, name=f"first {kind}{turn}.")
            first_s, _, _ = drive(engine, adds)
            if turn:
                first[kind].append(1000 * first_s)
    free, bound = median(first["free"]), median(first["schema"])
    return {"free_ms": round(free, 2), "schema_ms": round(bound, 2), "more_ms": round(bound - free, 2)}


def open_default(speculate: bool) -> tuple[Engine, list[list[int]]]:
    """The default model in int8, and 16 prompts."""
    from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted
    from axon.text.tokenizer import load_tokenizer

    if not is_converted(default_gguf(), MODEL_DIR):
        MODEL_DIR.parent.mkdir(parents=True, exist_ok=True)
        convert_gguf(default_gguf(), MODEL_DIR)
    tokenizer = load_tokenizer(MODEL_DIR)
    ask = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    prompts = [tokenizer.encode(ask.format(f"{n}. {TEXT}"), parse_special=True) for n in range(16)]
    config = EngineConfig(dtype="int8", kv_memory_bytes=512 << 20, speculate=speculate)
    return Engine(config, MODEL_DIR), prompts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of an answer")
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--speculate", choices=["on", "off"], default="on")
    options = parser.parse_args()
    from benchmarks.measures.machine import load_average, machine

    report: dict[str, Any] = {"benchmark": "grammar", "speculate": options.speculate, "machine": machine()}
    report["load_before"] = load_average()
    print(f"python {' '.join(sys.argv)}\n{report['machine']}, load {report['load_before']}", flush=True)
    engine, prompts = open_default(options.speculate == "on")
    drive(engine, make_adds(prompts[:1], 8, grammar(), name="warm"))  # reads the tokenizer
    report["rates"] = []
    for count in options.streams:
        row = compare_rates(engine, prompts[:count], options.tokens, options.rounds)
        report["rates"].append(row)
        print(
            f"{count:3} streams: {row['free_tokens_per_s']:8,.1f} tokens/s without a grammar, "
            f"{row['schema_tokens_per_s']:8,.1f} with the schema: {row['ratio']:.3f} (goal {GOAL_RATE})",
            flush=True,
        )
    report["first"] = first = compare_first(engine, prompts[0], max(20, options.rounds))
    print(
        f"first token: {first['free_ms']} ms, {first['more_ms']} ms more with a fresh schema (goal {GOAL_FIRST_MS:g})"
    )
    report["load_after"] = load_average()
    engine.close()
    print(json.dumps(report), flush=True)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
