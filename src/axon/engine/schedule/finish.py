"""When a choice ends. Pure, free of torch, so that a worker can ask it about a replay too."""

from collections.abc import Collection

from axon.domain.sampling import Sampling


def ending_ids(sampling: Sampling, eos_ids: Collection[int]) -> tuple[int, ...]:
    """The tokens that end a choice."""
    return sampling.stop_ids if sampling.ignore_eos else (*sampling.stop_ids, *sorted(eos_ids))


def finish_of(
    *,
    token: int,
    num_outputs: int,
    num_tokens: int,
    sampling: Sampling,
    eos_ids: Collection[int],
    max_model_len: int,
) -> str | None:
    """Says how a choice ends with ``token``, its ``num_outputs``-th: ``stop``, ``length``, or None: it goes on.

    ``num_tokens`` counts prompt and output together, ``token`` included.
    """
    if token in sampling.stop_ids or (token in eos_ids and not sampling.ignore_eos):
        return "stop"
    if num_outputs >= sampling.max_tokens or num_tokens >= max_model_len:
        return "length"
    return None
