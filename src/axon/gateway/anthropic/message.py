"""The message object that answers POST /v1/messages, and the parts of it that its stream repeats. Pure."""

from collections.abc import Sequence
from typing import Any

from axon.domain.billing.usage import Usage
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.reply import MessagesReply
from axon.domain.tenants.tenant import Tier
from axon.domain.turn import ended, opened
from axon.gateway.anthropic.blocks import block_body, content_of, stop_of
from axon.gateway.openai.frames import more_of


def message_body(job: Job, chunks: Sequence[Chunk], *, with_ledger: bool = False) -> dict[str, Any]:
    """Returns the whole message. ``chunks`` are all of a complete turn."""
    turn = ended(opened(job), tuple(chunks), at=job.created)
    reason, sequence = stop_of(chunks)
    more = more_of(job, chunks[-1], cost=turn.cost, with_ledger=with_ledger)
    hides, blocks = hides_thinking(job), content_of(turn.tokens)
    is_whole = reason in ("tool_use", "end_turn")
    return {
        **head_body(job),
        "content": [
            block_body(block, job.id, hides_thinking=hides, is_cut_off=block is blocks[-1] and not is_whole)
            for block in blocks
        ],
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": usage_body(job, turn.usage),
        **({"axon": more} if more else {}),
    }


def head_body(job: Job) -> dict[str, Any]:
    """Returns the message before its first token."""
    return {
        "id": job.id,
        "type": "message",
        "role": "assistant",
        "model": job.reply.model or job.deployment,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_body(job, Usage(prompt_tokens=job.num_prompt_tokens)),
    }


def usage_body(job: Job, usage: Usage) -> dict[str, Any]:
    """Returns the numbers of tokens. ``input_tokens`` are those that were computed: the cached ones come on top."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "service_tier": "priority" if Tier.of(job.priority) is Tier.PRIORITY else "standard",
    }


def hides_thinking(job: Job) -> bool:
    """Whether blocks of thinking are written without their text."""
    return isinstance(job.reply, MessagesReply) and job.reply.hides_thinking
