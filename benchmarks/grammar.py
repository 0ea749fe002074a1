"""What a grammar costs: tokens/s and the time to the first token with a JSON schema and without, on the same engine.

python -m benchmarks.grammar                 the default model in int8 on these cores; one JSON line last
python -m benchmarks.grammar --rounds 3 --tokens 64
python -m benchmarks.grammar --speculate off the masks alone: without drafts, forced ones included
python -m benchmarks.grammar --xllamacpp FOLDER  also llama.cpp as the wheel ``xllamacpp`` has it, unpacked there

Each round runs the same prompts without a grammar and with the schema, by turns, so that a noisy moment hits both; the
median of the rounds' ratios counts. All answers have the same number of tokens: the schema is of a long array, and no
answer ends by itself. First tokens are timed on an idle engine, each with a schema, or with strict tools, that were
never compiled before, and with tools that were. llama.cpp, where it is installed (``make bench-peers``) or given, takes
turns with Axon: the same model file, prompts, schema, temperature and threads.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from axon.domain.content.tool import Tool, Toolbox  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.core import EngineCore  # noqa: E402
from axon.engine.engine import Engine  # noqa: E402
from axon.engine.load.convert.gguf import convert_gguf, default_gguf, is_converted  # noqa: E402
from axon.text.grammar import schema_grammar  # noqa: E402
from axon.text.tools.formats import CallFormat  # noqa: E402
from axon.text.tools.grammar import call_grammar  # noqa: E402
from axon.text.tools.prompt import Dialect  # noqa: E402
from benchmarks.measures.comparison import AXON  # noqa: E402
from benchmarks.measures.constrained import drive, grammar, make_adds, schema  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.peers.grammars import Llama

MODEL_DIR = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
GOAL_RATE, GOAL_FIRST_MS = 0.9, 10.0
TEXT = "Write a list of invented people, each with a name, an age, a few tags, and whether they are active. "


def axon_rate(engine: EngineCore, prompts: list[list[int]], num_tokens: int, text: str, name: str) -> float:
    """Tokens/s of all streams together with this grammar."""
    driven = drive(engine, make_adds(prompts, num_tokens, text, name=name))
    assert {*map(len, driven.tokens.values())} == {num_tokens}, "an answer ended by itself"
    return driven.tokens_per_s


def compare_rates(
    engine: EngineCore,
    prompts: list[list[int]],
    num_tokens: int,
    num_rounds: int,
    peers: Mapping[str, "Llama"] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Tokens/s of all streams together, without a grammar and with the schema: a row for Axon and for each peer."""
    rates: dict[str, dict[str, list[float]]] = {name: {"free": [], "schema": []} for name in (AXON, *peers)}
    for turn in range(num_rounds + 1):
        for kind, is_bound in (("free", False), ("schema", True))[:: 1 if turn % 2 else -1]:
            text = grammar() if is_bound else ""
            found = {AXON: axon_rate(engine, prompts, num_tokens, text, f"{kind}{turn}.")}
            for name, peer in peers.items():
                found[name] = peer.rate(prompts, num_tokens, schema() if is_bound else None)
            for name, rate in found.items() if turn else ():
                rates[name][kind].append(rate)
    return [_rates_row(name, len(prompts), each) for name, each in rates.items()]


def _rates_row(name: str, num_streams: int, rates: Mapping[str, list[float]]) -> dict[str, Any]:
    ratios = [bound / free for free, bound in zip(rates["free"], rates["schema"], strict=True)]
    return {
        "engine": name,
        "streams": num_streams,
        "free_tokens_per_s": round(median(rates["free"]), 1),
        "schema_tokens_per_s": round(median(rates["schema"]), 1),
        "ratio": round(median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def toolbox(fresh: str = "") -> Toolbox:
    """Eight strict tools, any of which may be called; ``fresh`` makes them other tools."""
    person: dict[str, Any] = schema(fresh)["items"]
    return Toolbox(tools=tuple(Tool(name=f"add_{n}", parameters=json.dumps(person), strict=True) for n in range(8)))


def tools_grammar(fresh: str = "") -> str:
    """The grammar of an answer that may call the tools, as the server makes it."""
    return call_grammar(toolbox(fresh), CallFormat.HERMES, {}).after("")


def compare_first(engine: EngineCore, prompt: list[int], num_rounds: int) -> dict[str, Any]:
    """Milliseconds to the first token of a prompt: without a grammar, with a schema and with strict tools never seen
    before, and with tools seen before."""
    first: dict[str, list[float]] = {}
    for turn in range(num_rounds + 1):
        fresh = f"_{turn}"
        texts = {
            "free": "",
            "schema": grammar(fresh),
            "tools": tools_grammar(fresh),
            "tools_again": tools_grammar("_0"),
        }
        for kind, text in texts.items():
            driven = drive(engine, make_adds([prompt], 1, text, name=f"first {kind}{turn}."))
            if turn:
                first.setdefault(kind, []).append(1000 * driven.first_s)
    found = {kind: median(each) for kind, each in first.items()}
    more = {f"{kind}_more_ms": round(found[kind] - found["free"], 2) for kind in ("tools", "tools_again")}
    return {
        "free_ms": round(found["free"], 2),
        "schema_ms": round(found["schema"], 2),
        "more_ms": round(found["schema"] - found["free"], 2),
        **more,
    }


async def compare_plans(num_rounds: int) -> dict[str, float]:
    """Milliseconds in which the gateway makes and checks the grammar of strict tools, fresh ones and known ones, and
    the round trip to its compiler's process for a fresh schema without what that computes."""
    from axon.gateway.turn.calling import planned
    from axon.sessions.compiler import Compiler
    from axon.sessions.grammars import Grammars
    from axon.text.compiler.messages import Task

    tokenizer = SimpleNamespace(control_texts=())
    target: Any = SimpleNamespace(dialect=Dialect(), prompts=SimpleNamespace(tokenizer=tokenizer))
    grammars, taken, trips = Grammars(Compiler()), list[tuple[float, float]](), list[float]()
    for turn in range(num_rounds + 1):
        marks = [time.perf_counter()]
        for _ in range(2):
            await planned(grammars.of("benchmark"), toolbox(f"_{turn}"), target)
            marks.append(time.perf_counter())
        taken.append((marks[1] - marks[0], marks[2] - marks[1]))
        began = time.perf_counter()
        result = await grammars.result("benchmark", Task(kind="grammar", text=schema_grammar({"const": turn}).text))
        trips.append(time.perf_counter() - began - result.cpu_s)
    await grammars.aclose()
    fresh, again = (1000 * median(each) for each in zip(*taken[1:], strict=True))
    return {"fresh_ms": round(fresh, 2), "again_ms": round(again, 2), "trip_ms": round(1000 * median(trips), 2)}


def open_default(speculate: bool) -> tuple[Engine, list[list[int]]]:
    """The default model in int8, and 16 prompts."""
    from axon.text.tokenizer import load_tokenizer

    if not is_converted(default_gguf(), MODEL_DIR):
        MODEL_DIR.parent.mkdir(parents=True, exist_ok=True)
        convert_gguf(default_gguf(), MODEL_DIR)
    tokenizer = load_tokenizer(MODEL_DIR)
    ask = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    prompts = [tokenizer.encode(ask.format(f"{n}. {TEXT}"), parse_special=True) for n in range(16)]
    config = EngineConfig(dtype="int8", kv_memory_bytes=512 << 20, speculate=speculate)
    return Engine(config, MODEL_DIR), prompts


def told(row: Mapping[str, Any]) -> str:
    """A row of rates for people."""
    return (
        f"{row['streams']:3} streams, {row['engine']:22} {row['free_tokens_per_s']:8,.1f} tokens/s without a grammar, "
        f"{row['schema_tokens_per_s']:8,.1f} with the schema: {row['ratio']:.3f}"
    ) + (f" (goal {GOAL_RATE})" if row["engine"] == AXON else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=128, help="tokens of an answer")
    parser.add_argument("--streams", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--speculate", choices=["on", "off"], default="on")
    parser.add_argument("--xllamacpp", type=Path, help="folder with the unpacked wheel")
    options = parser.parse_args()
    from benchmarks.measures.machine import load_average, machine
    from benchmarks.peers.grammars import llamas

    report: dict[str, Any] = {"benchmark": "grammar", "speculate": options.speculate, "machine": machine()}
    report["load_before"] = load_average()
    print(f"python {' '.join(sys.argv)}\n{report['machine']}, load {report['load_before']}", flush=True)
    engine, prompts = open_default(options.speculate == "on")
    drive(engine, make_adds(prompts[:1], 8, grammar(), name="warm"))  # reads the tokenizer
    report["rates"] = []
    with tempfile.TemporaryDirectory() as folder, llamas(options.xllamacpp, default_gguf(), Path(folder)) as peers:
        for count in options.streams:
            rows = compare_rates(engine, prompts[:count], options.tokens, options.rounds, peers)
            report["rates"] += rows
            print("\n".join(map(told, rows)), flush=True)
    report["first"] = first = compare_first(engine, prompts[0], max(20, options.rounds))
    report["plans"] = plans = asyncio.run(compare_plans(max(20, options.rounds)))
    print(
        f"first token: {first['free_ms']} ms, {first['more_ms']} ms more with a fresh schema (goal {GOAL_FIRST_MS:g}), "
        f"{first['tools_more_ms']} ms more with 8 fresh strict tools, {first['tools_again_more_ms']} ms with known\n"
        f"the gateway's plan of 8 strict tools: {plans['fresh_ms']} ms fresh, {plans['again_ms']} ms known; "
        f"a round trip to the compiler's process: {plans['trip_ms']} ms"
    )
    report["load_after"] = load_average()
    engine.close()
    print(json.dumps(report), flush=True)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
