"""Hugging Face transformers as the reference: greedy, in float32, a prompt at a time. Knows nothing of Axon."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint


def load(folder: Path, **arguments: Any) -> Any:
    """The folder's model with plain attention."""
    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True, **arguments
    )


def read_gguf(path: Path, folder: Path) -> dict[str, Any]:
    """The tensors that transformers finds in a GGUF file of the folder's model, by the names it gives them."""
    found = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=load(folder))["tensors"]
    return {name: tensor.numpy() for name, tensor in found.items()}


@torch.inference_mode()
def answer(model: Any, prompt: list[int], num_tokens: int) -> list[int]:
    """The likeliest tokens, the lowest id among equals; ends are ignored."""
    cache, ids = None, torch.tensor([prompt])
    tokens: list[int] = []
    for _ in range(num_tokens):
        output = model(ids, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        tokens.append(int(output.logits[0, -1].argmax()))
        ids = torch.tensor([[tokens[-1]]])
    return tokens


@torch.inference_mode()
def prompt_logprobs(model: Any, prompt: list[int]) -> list[float]:
    """The log probability of each token but the first, behind those before it."""
    likely = model(torch.tensor([prompt])).logits[0].log_softmax(-1)
    return [float(likely[place, token]) for place, token in enumerate(prompt[1:])]
