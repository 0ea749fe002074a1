"""A sequence's parameters as vLLM takes them. Pure functions; imports no vLLM."""

from collections import Counter
from collections.abc import Collection
from hashlib import blake2b
from typing import Any

from axon.engine.protocol.messages import Add
from axon.engine.schedule.finish import ending_ids

_SEED_BITS = 63


def prompt_of(add: Add) -> dict[str, Any]:
    """The prompt with what earlier attempts emitted behind it; blocks are shared within a tenant alone."""
    prompt: dict[str, Any] = {"prompt_token_ids": [*add.prompt_ids, *add.output_ids]}
    return prompt | {"cache_salt": add.tenant} if add.tenant else prompt


def sampling_of(add: Add, eos_ids: Collection[int]) -> dict[str, Any]:
    """The arguments of ``SamplingParams``, but for grammar and output kind."""
    sampling, num_replayed = add.sampling, len(add.output_ids)
    return {
        "max_tokens": sampling.max_tokens - num_replayed,
        "min_tokens": max(0, min(sampling.min_tokens, sampling.max_tokens) - num_replayed),
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "logit_bias": biases_of(add) or None,
        "logprobs": sampling.logprobs,
        "prompt_logprobs": _num_prompt_top(add),
        "stop_token_ids": sorted(set(_ends(add, eos_ids))),
        "ignore_eos": True,  # end tokens are among the stop tokens, as far as they end the answer
        "seed": seed_of(add),
        "detokenize": False,
    }


def _ends(add: Add, eos_ids: Collection[int]) -> tuple[int, ...]:
    """A grammar ends its answer by an end token, whatever ``ignore_eos`` says."""
    return (*add.sampling.stop_ids, *eos_ids) if add.sampling.grammar else ending_ids(add.sampling, eos_ids)


def seed_of(add: Add) -> int:
    """A seed of its own for each choice, and for each place at which an answer goes on: a generator that began anew
    would repeat the numbers of the answer's first tokens."""
    key = f"{add.seed}/{add.choice}/{len(add.output_ids)}".encode()
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") >> (64 - _SEED_BITS)


def biases_of(add: Add) -> dict[int, float]:
    """The request's biases, less the penalties of the replayed tokens, which vLLM takes for a part of the prompt."""
    sampling = add.sampling
    biases = dict(sampling.logit_bias)
    if sampling.presence_penalty or sampling.frequency_penalty:
        for token, count in Counter(add.output_ids).items():
            penalty = sampling.presence_penalty + count * sampling.frequency_penalty
            biases[token] = biases.get(token, 0.0) - penalty
    return biases


def _num_prompt_top(add: Add) -> int | None:
    """Most likely tokens to return for each prompt token; a replay had them reported before its first token."""
    sampling = add.sampling
    if not sampling.prompt_logprobs or add.output_ids:
        return None
    return (sampling.logprobs or 0) if sampling.prompt_top is None else sampling.prompt_top
