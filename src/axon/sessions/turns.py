"""Opens a turn: everything a job needs, decided once. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from axon.domain.deployment import Deployment
from axon.domain.ids import new_seed
from axon.domain.job import Job
from axon.domain.lane import lane_of
from axon.domain.sampling import Sampling
from axon.errors import ContextTooLong


def make_job(
    *,
    job_id: str,
    tenant: str,
    deployment: Deployment,
    num_lanes: int,
    prompt_ids: Sequence[int],
    sampling: Sampling,
    seed: int | None,
    now: float,
    timeout_s: float,
    retain: bool,
    trace: str,
    reply: Mapping[str, Any],
    choices: int = 1,
    reasoning: str = "",
    affinity: str = "",
) -> Job:
    """The job of an admitted turn, still without its ticket. ``sampling.max_tokens`` of 0 means: as many as fit."""
    return Job(
        id=job_id,
        tenant=tenant,
        deployment=deployment.name,
        version=deployment.version,
        lane=lane_of(tenant, deployment.name, num_lanes),
        prompt_ids=tuple(prompt_ids),
        choices=choices,
        reasoning=reasoning,
        affinity=affinity,
        sampling=_within_context(sampling, len(prompt_ids), deployment.max_model_len),
        seed=new_seed() if seed is None else seed,
        deadline=now + timeout_s,
        created=now,
        retain=retain,
        trace=trace,
        reply=reply,
    )


def _within_context(sampling: Sampling, num_prompt: int, max_model_len: int) -> Sampling:
    room = max_model_len - num_prompt
    if sampling.max_tokens > room:
        raise ContextTooLong(
            f"This model's maximum context length is {max_model_len} tokens. However, you requested "
            f"{num_prompt + sampling.max_tokens} tokens ({num_prompt} in the prompt, {sampling.max_tokens} in the "
            "completion). Please reduce the length of the prompt or completion.",
            param="max_tokens",
        )
    return sampling if sampling.max_tokens else replace(sampling, max_tokens=room)
