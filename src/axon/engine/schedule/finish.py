"""Decides whether a sequence ends with a token: by an end token or by its length. Pure functions."""

from collections.abc import Collection

from axon.domain.sampling import Sampling


def ending_ids(sampling: Sampling, eos_ids: Collection[int]) -> tuple[int, ...]:
    """The token ids that end a sequence."""
    return sampling.stop_ids if sampling.ignore_eos else (*sampling.stop_ids, *sorted(eos_ids))


def masked_ids(sampling: Sampling, eos_ids: Collection[int], position: int) -> tuple[int, ...]:
    """The token ids that end a choice which has a grammar, but must not yet: it ends early only with its grammar."""
    if position < sampling.min_tokens:
        return (*sampling.stop_ids, *eos_ids)
    return tuple(eos_ids) if sampling.ignore_eos else ()


def finish_of(
    *, token: int, num_outputs: int, num_tokens: int, sampling: Sampling, eos_ids: Collection[int], max_len: int
) -> str | None:
    """The finish reason of a sequence after ``token``, its ``num_outputs``-th: ``stop``, ``length``, or None to go on.

    ``num_tokens`` counts prompt and output together, ``token`` included; ``max_len`` is their limit.
    """
    if token in sampling.stop_ids or (token in eos_ids and (not sampling.ignore_eos or sampling.grammar)):
        return "stop"
    if num_outputs >= sampling.max_tokens or num_tokens >= max_len:
        return "length"
    return None
