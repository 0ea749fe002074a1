"""What a grammar costs on one GPU: 64 streams without one, with a JSON schema, and both kinds beside each other.

python benchmarks/grammar_gpu.py --tokenizer FOLDER              random weights of 8b; one JSON line last
python benchmarks/grammar_gpu.py --tokenizer FOLDER --shape 0.6b

FOLDER has a tokenizer.json, of any model with fewer tokens than the shape; llguidance must be importable. Rounds go by
turns, and the median of their ratios counts. ``same_rows`` is the share of rows without a grammar that say the same
beside rows with one; on a GPU a row's last bits depend on its batch, so it may be less than 1.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.engine_gpu import NO_SLO_MS, SHAPES, open_engine, versions  # noqa: E402
from benchmarks.engine_gpu import make_adds as make_random  # noqa: E402
from benchmarks.measures.constrained import drive, grammar, make_adds  # noqa: E402

GOAL = 0.95
NUM_PROMPT = 128


def measure(engine: Any, vocab_size: int, streams: int, num_tokens: int, num_rounds: int) -> dict[str, Any]:
    """Tokens/s of all streams without a grammar, with one each, and with one for every other."""
    text = grammar()
    rates: dict[str, list[float]] = {"free": [], "schema": [], "half": []}
    same: list[bool] = []
    for turn in range(num_rounds + 1):
        prompts = [add.prompt_ids for add in make_random([(NUM_PROMPT, 1)] * streams, vocab_size, turn)]
        kept: list[list[int]] = []
        for kind in rates:
            free = make_adds(prompts, num_tokens, "", name=f"{kind}{turn}.free.")
            bound = make_adds(prompts, num_tokens, text, name=f"{kind}{turn}.bound.")
            adds = {"free": free, "schema": bound, "half": free[::2] + bound[1::2]}[kind]
            driven = drive(engine, adds)
            tokens = driven.tokens
            assert {*map(len, tokens.values())} == {num_tokens}, "an answer ended by itself"
            if kind == "free":
                kept = [tokens[add.id] for add in free[::2]]
            if kind == "half":
                same += [tokens[add.id] == before for add, before in zip(free[::2], kept, strict=True)]
            if turn:
                rates[kind].append(driven.tokens_per_s)
    ratios = {
        kind: [each / free for each, free in zip(rates[kind], rates["free"], strict=True)]
        for kind in ("schema", "half")
    }
    return {
        "streams": streams,
        "same_rows": round(sum(same) / len(same), 3),
        "tokens_per_s": {kind: round(median(each), 1) for kind, each in rates.items()},
        "ratio": {kind: round(median(each), 3) for kind, each in ratios.items()},
        "ratios": {kind: [round(ratio, 3) for ratio in each] for kind, each in ratios.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--shape", choices=[*SHAPES], default="8b")
    parser.add_argument("--streams", type=int, nargs="*", default=[64])
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    from axon.engine.grammar.grammars import Grammars
    from axon.engine.grammar.vocabulary import read_vocabulary

    engine: Any = open_engine(options.shape, itl_slo_ms=NO_SLO_MS)
    while engine.tend():  # records the graphs that would follow between steps
        pass
    vocab_size = SHAPES[options.shape]["vocab_size"]
    read = partial(read_vocabulary, options.tokenizer, size=vocab_size, eos_ids=(0, 2))
    engine._open_grammars = partial(Grammars, read)
    report: dict[str, Any] = {"benchmark": "grammar-gpu", "shape": options.shape, **versions(), "rates": []}
    for streams in options.streams:
        row = measure(engine, vocab_size, streams, options.tokens, options.rounds)
        report["rates"].append(row)
        print(f"{streams} streams: {row['tokens_per_s']} tokens/s, ratios {row['ratio']} (goal {GOAL})", flush=True)
    print(json.dumps(report), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
