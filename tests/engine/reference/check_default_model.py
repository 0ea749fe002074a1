"""Compares Axon's greedy tokens with the reference, for every prompt; the tests leave out five long ones. In float32.

python -m tests.engine.reference.check_default_model MODEL_FOLDER
"""

import json
import sys
from pathlib import Path

from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.text.tokenizer import load_tokenizer
from tests.engine.builders import make_add, run_to_end
from tests.engine.reference.prompts import NUM_TOKENS, make_prompts

ANSWERS = Path(__file__).parent / "default_model.json"


def main(folder: Path) -> int:
    """Prints each prompt that differs and from where on; returns how many do."""
    tokenizer = load_tokenizer(folder)
    prompts = make_prompts(lambda text: tokenizer.encode(text, parse_special=True))
    expected: list[list[int]] = json.loads(ANSWERS.read_text())["answers"]
    adds = [
        make_add(str(index), prompt=prompt, max_tokens=NUM_TOKENS, ignore_eos=True)
        for index, prompt in enumerate(prompts)
    ]
    outputs = run_to_end(Engine(EngineConfig(dtype="float32", kv_memory_bytes=1 << 30), folder), adds)
    num_wrong = 0
    for index, tokens in enumerate(expected):
        pairs = zip(outputs[str(index)], tokens, strict=True)
        first = next((position for position, (ours, theirs) in enumerate(pairs) if ours != theirs), None)
        if first is not None:
            num_wrong += 1
            print(f"prompt {index} of {len(prompts[index])} tokens differs from token {first} on")
    print(f"{len(expected) - num_wrong} of {len(expected)} prompts give the same {NUM_TOKENS} tokens")
    return num_wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
