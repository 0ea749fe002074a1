"""Writes what Hugging Face transformers answers on the default model, greedily and in float32. Knows nothing of Axon.

    python -m tests.engine.reference.make_default_model MODEL_FOLDER

The folder is the default model as Axon converts it. Written beside this file: the answer's ids for each prompt of
``prompts.py``.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer

from tests.engine.reference import transformers_model
from tests.engine.reference.prompts import NUM_TOKENS, make_prompts


def main(folder: str) -> None:
    """Answers every prompt by itself, ends ignored."""
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    model = transformers_model.load(Path(folder))
    answers = []
    for prompt in make_prompts(lambda text: tokenizer.encode(text, add_special_tokens=False).ids):
        answers.append(transformers_model.answer(model, prompt, NUM_TOKENS))
        print(len(prompt), answers[-1][:8], flush=True)
    content = {"torch": torch.__version__, "transformers": transformers.__version__, "answers": answers}
    (Path(__file__).parent / "default_model.json").write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
