"""The model under test: a tiny random Llama whose every token is one character, so that a seq is a length of text.

One token more ends an answer: an answer of a grammar needs it, every other request forbids it by ``min_tokens``.
"""

import json
import os
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from tests.engine.builders import TINY_CONFIG, make_tiny_llama
from tests.engine.head_files import LAYERS, favour, make_head
from tests.vllm_environment import VARIABLE, engine_settings, wrapped_python

NAME = "tiny"
STEP_S = 0.04
"""A step's pace: an answer takes seconds, as one of a large model does, and faults find streams running."""
END_ID = TINY_CONFIG["vocab_size"] - 1
CHARACTERS = [chr(code) for code in [*range(0x20, 0x7F), ord("\n"), *range(0xC0, 0x250)]][:END_ID]
POISON_ID = len(CHARACTERS) - 1
"""A prompt with three of it kills the engine that runs it."""
_MAX_LENGTH = 1024
FOR_VLLM: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_act": "silu",
    "dtype": "float32",
    "head_dim": 32,
    "hidden_size": 64,
    "num_attention_heads": 4,
}
"""What vLLM needs in a model's config.json: the name of a class, and heads of a size that its kernels know."""
_UNKNOWN = "~"
"""Stands for characters that the model does not know. No space: vLLM keeps the unknown token out of grammars."""
_TOKENIZER_FOR_VLLM = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "unk_token": _UNKNOWN}
_TEMPLATE = """{% for message in messages %}{{ message.role }}: {{ message.content }}
{% endfor %}{% if tools %}<tool_call> {{ tools | map(attribute="function.name") | join(" ") }}
{% endif %}{% if add_generation_prompt %}assistant:{% endif %}"""
"""It knows tools, in the format of Hermes, so that prompts with tools stay short."""
_INJECTED = Path(__file__).parent / "injected"
_HEAD_IDS = range(33, 49)
"""The letters that the draft head knows, and that its model says most."""


def make_model(folder: Path, **changes: Any) -> Path:
    """Writes the model into the folder; equal arguments give the same one."""
    make_tiny_llama(folder, eos_token_id=END_ID, max_position_embeddings=_MAX_LENGTH, **changes)
    tokenizer = Tokenizer(models.WordLevel({each: id for id, each in enumerate(CHARACTERS)}, unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])  # tokens are text as they stand
    tokenizer.add_special_tokens([AddedToken("<end>", special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    if "architectures" in changes:
        (folder / "tokenizer_config.json").write_text(json.dumps(_TOKENIZER_FOR_VLLM))
    (folder / "chat_template.jinja").write_text(_TEMPLATE)
    (folder / "generation_config.json").write_text(json.dumps({"temperature": 0.0}))
    return folder


def changes() -> dict[str, Any]:
    """What the model has beside the usual, for the engine that runs it."""
    return FOR_VLLM if os.environ.get(VARIABLE) else {}


def settings(folder: Path) -> dict[str, object]:
    """How a server runs it: with Axon's own engine, or in ``make test-vllm`` with vLLM."""
    if python := os.environ.get(VARIABLE):
        own = engine_settings(wrapped_python(folder.parent, python, _INJECTED))
        return _own_settings(folder) | own | {"worker_step_timeout_s": 20.0}
    return _own_settings(folder)


def _own_settings(folder: Path) -> dict[str, object]:
    """How a server runs it: on one thread, a prompt in small pieces; and what would else take minutes. Its arithmetic
    is the default, int8 where that runs: its engine starts without torch, and a fault that ends one has two started.
    """
    return {
        "engine_kind": "axon",
        "engine_device": "cpu",
        "engine_threads": 1,
        "engine_kv_memory_bytes": 16 << 20,
        "engine_max_prefill_tokens": 48,
        "engine_max_sequences": 48,
        "engine_max_slowdown": 16.0,
        "worker_step_timeout_s": 6.0,
        "sessions_reader_grace_s": 20.0,
        "model": folder,
        "model_name": NAME,
    }


def head_settings(folder: Path) -> dict[str, object]:
    """How a server runs a model with a draft head, both written into the folder; some of its drafts are right."""
    target = favour(make_model(folder / "model", num_hidden_layers=LAYERS), _HEAD_IDS)
    head = make_head(folder / "head", ids=_HEAD_IDS, max_position_embeddings=_MAX_LENGTH)
    return _own_settings(target) | {"engine_draft_model": head}


def shelf(folder: Path) -> dict[str, object]:
    """Has engines keep copies of their blocks in a folder, with so few blocks on the device that they are needed."""
    return {"engine_kv_folder": folder, "engine_kv_memory_bytes": 4 << 20}


def environment(step_s: float) -> dict[str, str]:
    """What an engine's process needs to be slow, and to die of poison."""
    return {"FAULTS_STEP_S": str(step_s), "FAULTS_POISON_ID": str(POISON_ID), "PYTHONPATH": str(_INJECTED)}
