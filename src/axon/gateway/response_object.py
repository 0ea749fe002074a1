"""A response as OpenAI's clients read it. Pure: a function of the turn as it stands."""

from typing import Any

from axon.domain.chunk import Chunk
from axon.domain.conversation import answer, is_conversation
from axon.domain.item import Item
from axon.domain.job import Job
from axon.domain.turn import Turn, TurnState
from axon.domain.usage import Usage
from axon.gateway.frames import failure
from axon.gateway.items import item_body


def response_body(turn: Turn, *, status: str | None = None) -> dict[str, Any]:
    """The response; without a status it is what the turn's state says."""
    job, reply = turn.job, turn.job.reply
    ended = turn.state.terminal
    return {
        "id": job.id,
        "object": "response",
        "created_at": int(job.created),
        "status": status or status_of(turn),
        "background": job.background,
        "error": _error(turn),
        "incomplete_details": _incomplete_details(turn),
        "instructions": reply.get("instructions"),
        "max_output_tokens": reply.get("max_output_tokens"),
        "max_tool_calls": None,
        "metadata": reply.get("metadata") or {},
        "model": reply.get("model", job.deployment),
        "output": [item_body(item) for item in output(turn)] if ended else [],
        "parallel_tool_calls": True,
        "previous_response_id": job.previous or None,
        "conversation": {"id": job.session} if is_conversation(job.session) else None,
        "prompt_cache_key": reply.get("prompt_cache_key"),
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": reply.get("safety_identifier"),
        "service_tier": "default",
        "store": job.retain,
        "temperature": job.sampling.temperature,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": job.sampling.top_p,
        "truncation": reply.get("truncation") or "disabled",
        "usage": usage_body(turn.usage) if ended else None,
        "user": reply.get("user"),
    }


def status_of(turn: Turn) -> str:
    """OpenAI's word for how the turn stands."""
    match turn.state:
        case TurnState.OPENED:
            return "in_progress"
        case TurnState.CANCELLED:
            return "cancelled"
        case TurnState.COMPLETED:
            return "incomplete" if _cut_off(turn) else "completed"
    return "failed"


def output(turn: Turn) -> tuple[Item, ...]:
    """What the model said; nothing when it never began."""
    return (answer(turn),) if turn.tokens or turn.state is TurnState.COMPLETED else ()


def usage_body(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }


def queued(job: Job) -> str:
    """How a response begins."""
    return "queued" if job.background else "in_progress"


def _cut_off(turn: Turn) -> bool:
    return any(end.reason == "length" for end in turn.ends)


def _incomplete_details(turn: Turn) -> dict[str, str] | None:
    return {"reason": "max_output_tokens"} if turn.state is TurnState.COMPLETED and _cut_off(turn) else None


def _error(turn: Turn) -> dict[str, Any] | None:
    """OpenAI knows few codes; ours stands beside it as the type."""
    last = Chunk(first=1, epoch=0, terminal=turn.state, code=turn.code, message=turn.message)
    error = failure(last) if turn.state not in (TurnState.OPENED, TurnState.CANCELLED) else None
    if error is None:
        return None
    code = "invalid_prompt" if error.kind == "invalid" else "server_error"
    return {"code": code, "message": error.message, "type": error.code, "param": error.param}
