"""What a grammar costs vLLM on one GPU: the streams, prompts and schema of ``benchmarks/grammar_gpu.py``.

python benchmarks/peers/vllm_grammar_gpu.py --tokenizer FOLDER --backend guidance

FOLDER has a tokenizer.json; vllm must be importable. The weights are dummies in the shape of 8b. A rate is that of
a whole run, prompts included, so only its ratios compare with those of Axon.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.measures.constrained import schema  # noqa: E402

STREAMS, NUM_PROMPT, NUM_TOKENS = 64, 128, 256
SHAPE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "dtype": "bfloat16",
}
TOKENIZER = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "bos_token": "<|im_start|>"}


def make_model(folder: Path, tokenizer: Path) -> None:
    """Writes the files that vLLM reads, without weights."""
    shutil.copytree(tokenizer, folder, dirs_exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SHAPE))
    if not (folder / "tokenizer_config.json").exists():
        (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))


def measure(engine: Any, num_rounds: int) -> dict[str, list[float]]:
    """Tokens/s without a grammar, with one each, and with one for every other stream; the first round warms up."""
    params: Any = import_module("vllm.sampling_params")  # it is not among the packages of this repository
    bound = params.StructuredOutputsParams(json=json.dumps(schema()))
    rates: dict[str, list[float]] = {"free": [], "schema": [], "half": []}
    for turn in range(num_rounds + 1):
        prompts = [
            {"prompt_token_ids": [10 + (turn * 7919 + row * 101 + at * 13) % 9000 for at in range(NUM_PROMPT)]}
            for row in range(STREAMS)
        ]
        for kind, taken in rates.items():
            is_bound = [kind == "schema" or (kind == "half" and row % 2 == 1) for row in range(STREAMS)]
            samplings = [
                params.SamplingParams(
                    temperature=1.0,
                    ignore_eos=True,
                    max_tokens=NUM_TOKENS,
                    detokenize=False,
                    structured_outputs=bound if each else None,
                )
                for each in is_bound
            ]
            began = time.perf_counter()
            answers = engine.generate(prompts, samplings, use_tqdm=False)
            total = sum(len(answer.outputs[0].token_ids) for answer in answers)
            if turn:
                taken.append(total / (time.perf_counter() - began))
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    parser.add_argument("--backend", choices=["xgrammar", "guidance"], default="xgrammar")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    vllm: Any = import_module("vllm")
    with tempfile.TemporaryDirectory() as name:
        make_model(Path(name), options.tokenizer)
        engine = vllm.LLM(
            name,
            load_format="dummy",
            max_model_len=2048,
            gpu_memory_utilization=0.8,
            enable_prefix_caching=False,
            max_num_seqs=128,
            structured_outputs_config={"backend": options.backend, "disable_any_whitespace": True},
        )
        rates = {kind: round(median(each), 1) for kind, each in measure(engine, options.rounds).items()}
    ratios = {kind: round(rates[kind] / rates["free"], 3) for kind in ("schema", "half")}
    print(json.dumps({"benchmark": "vllm-grammar-gpu", "backend": options.backend, "rates": rates, "ratios": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
