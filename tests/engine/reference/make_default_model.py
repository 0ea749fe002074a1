"""Writes what Hugging Face transformers answers on the default model, greedily and in float32. Knows nothing of Axon.

    PYTHONPATH=. python tests/engine/reference/make_default_model.py MODEL_FOLDER

Needs torch, transformers and tokenizers, which need not be those of Axon's own environment. The folder is the default
model as Axon converts it. Written beside this file: the answer's ids for each prompt of ``prompts.py``.
"""

import json
import sys
from pathlib import Path

import torch
import transformers  # type: ignore[import-not-found]
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from tests.engine.reference.prompts import NUM_TOKENS, make_prompts


def main(folder: str) -> None:
    """Answers every prompt by itself, ends ignored."""
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    answers = []
    for prompt in make_prompts(lambda text: tokenizer.encode(text, add_special_tokens=False).ids):
        answers.append(answer(model, prompt))
        print(len(prompt), answers[-1][:8], flush=True)
    content = {"torch": torch.__version__, "transformers": transformers.__version__, "answers": answers}
    (Path(__file__).parent / "default_model.json").write_text(json.dumps(content) + "\n")


@torch.inference_mode()
def answer(model: torch.nn.Module, prompt: list[int]) -> list[int]:
    """Greedy: the lowest id among equals, as argmax takes it."""
    cache, ids, tokens = None, torch.tensor([prompt]), []
    for _ in range(NUM_TOKENS):
        output = model(ids, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        tokens.append(int(output.logits[0, -1].argmax()))
        ids = torch.tensor([[tokens[-1]]])
    return tokens


if __name__ == "__main__":
    main(sys.argv[1])
