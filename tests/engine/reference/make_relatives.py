"""Writes what Hugging Face transformers answers on a tiny random model of each architecture, greedily and in float32.

    PYTHONPATH=.:src python tests/engine/reference/make_relatives.py

Needs torch, transformers, numpy and safetensors, which need not be those of Axon's own environment; the random models
come from the tests' own builder. Written beside this file: each model's answers' ids.
"""

import json
import tempfile
from pathlib import Path

import torch
import transformers  # type: ignore[import-not-found]
from transformers import AutoModelForCausalLM

from tests.engine.builders import RELATIVES, make_tiny_llama
from tests.engine.reference.relatives import NUM_TOKENS, PROMPTS


@torch.inference_mode()
def main() -> None:
    """Answers every prompt by itself and from the start for each token: no cache, nothing to get wrong."""
    answers: dict[str, list[list[int]]] = {}
    for name, changes in RELATIVES.items():
        with tempfile.TemporaryDirectory() as folder:
            make_tiny_llama(Path(folder), **changes)
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
        answers[name] = []
        for prompt in PROMPTS:
            known = list(prompt)
            for _ in range(NUM_TOKENS):
                known.append(int(model(torch.tensor([known]), use_cache=False).logits[0, -1].argmax()))
            answers[name].append(known[len(prompt) :])
    content = {"torch": torch.__version__, "transformers": transformers.__version__, "answers": answers}
    (Path(__file__).parent / "relatives.json").write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
