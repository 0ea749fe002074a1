"""The JSON of a response object. Pure functions of the turn; knows no route and no stream."""

import json
from typing import Any

import msgspec

from axon.domain.answer import Part, parts_of
from axon.domain.billing.usage import Usage
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Token
from axon.domain.reply import ResponseReply
from axon.domain.session.conversation import answer_status, answers, is_conversation
from axon.domain.tenants.tenant import Tier
from axon.domain.turn import Turn, TurnState
from axon.gateway.openai import logprobs
from axon.gateway.openai.frames import more_of
from axon.gateway.openai.outcome import failure
from axon.gateway.openai.shape import thinking_of
from axon.gateway.responses.items import item_body


def response_body(turn: Turn, *, status: str | None = None, with_ledger: bool = False) -> dict[str, Any]:
    """Returns the response object; ``status`` replaces the one that follows from the turn's state."""
    job = turn.job
    reply = job.reply if isinstance(job.reply, ResponseReply) else ResponseReply(model=job.reply.model)
    ended = turn.state.terminal
    return {
        "id": job.id,
        "object": "response",
        "created_at": int(job.created),
        "completed_at": _completed_at(turn),
        "status": status or status_of(turn),
        "background": job.background,
        "error": _error(turn),
        "frequency_penalty": job.sampling.frequency_penalty,
        "incomplete_details": _incomplete_details(turn),
        "instructions": reply.instructions,
        "max_output_tokens": reply.max_output_tokens,
        "max_tool_calls": None,
        "metadata": reply.metadata,
        "model": reply.model or job.deployment,
        "output": output(turn) if ended else [],
        "parallel_tool_calls": not reply.serial_calls,
        "presence_penalty": job.sampling.presence_penalty,
        "previous_response_id": None if is_conversation(job.previous) else job.previous or None,
        "conversation": {"id": job.session} if is_conversation(job.session) else None,
        "prompt_cache_key": reply.prompt_cache_key,
        "reasoning": {"effort": None, "summary": None, **reply.reasoning},
        "safety_identifier": reply.safety_identifier,
        "service_tier": Tier.of(job.priority).value,
        "store": job.retain,
        "temperature": job.sampling.temperature,
        "text": {"format": {"type": "text"}, **(json.loads(reply.text) if reply.text else {})},
        "tool_choice": msgspec.json.decode(reply.tool_choice or b'"auto"'),
        "tools": msgspec.json.decode(reply.tools or b"[]"),
        "top_logprobs": job.sampling.logprobs or 0,
        "top_p": job.sampling.top_p,
        "truncation": reply.truncation or "disabled",
        "usage": usage_body(turn.usage) if ended else None,
        "user": reply.user,
        "axon": {
            "version": turn.job.version,
            **_branch(job),
            **more_of(job, turn, cost=turn.cost, with_ledger=with_ledger and ended),
        },
    }


def _branch(job: Job) -> dict[str, str]:
    """Returns the field that names the conversation from whose start the response branches off; usually none."""
    return {"branch_of": job.previous} if is_conversation(job.previous) else {}


def status_of(turn: Turn) -> str:
    """Returns OpenAI's name for the turn's state."""
    match turn.state:
        case TurnState.OPENED:
            return "in_progress"
        case TurnState.CANCELLED:
            return "cancelled"
        case TurnState.COMPLETED:
            return "incomplete" if _cut_off(turn) else "completed"
    return "failed"


def output(turn: Turn) -> list[dict[str, Any]]:
    """Returns the output items: the reasoning, the message and the calls, as far as the turn has them."""
    bodies = [thinking_body(turn)] if thinking_of(turn.tokens) else []
    parts = parts_of(turn.tokens)
    if not parts and turn.state is not TurnState.COMPLETED:
        return bodies
    for item, part in zip(answers(turn), parts or [Part(tokens=[*turn.tokens])], strict=True):
        body = item_body(item)
        if not part.pieces:
            body["content"][0]["logprobs"] = [entry for token in part.tokens for entry in likelihoods(token)]
        bodies.append(body)
    return bodies


def thinking_body(turn: Turn) -> dict[str, Any]:
    """Returns the reasoning item of a model that writes its reasoning; it is completed once the answer begins."""
    status = "completed" if parts_of(turn.tokens) else answer_status(turn)
    return {**thinking_head(turn.id, status), "content": [thought_part(thinking_of(turn.tokens))]}


def thinking_head(turn_id: str, status: str) -> dict[str, Any]:
    """Returns a reasoning item without content."""
    return {"id": thinking_id(turn_id), "type": "reasoning", "status": status, "summary": [], "content": []}


def thinking_id(turn_id: str) -> str:
    """Returns the id of a turn's reasoning item, which is derived from the turn's."""
    return f"rs_{turn_id.partition('_')[2]}"


def thought_part(text: str) -> dict[str, str]:
    """Returns a content part of a reasoning item."""
    return {"type": "reasoning_text", "text": text}


def likelihoods(token: Token) -> list[dict[str, Any]]:
    """Returns the log probabilities of a token of the answer; an empty list if the client did not ask for them."""
    found = logprobs.of_chat([token]) if token.text or not thinking_of([token]) else None
    return found["content"] if found else []


def usage_body(usage: Usage) -> dict[str, Any]:
    """Returns the numbers of tokens as the Responses API's ``usage`` object."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


def queued(job: Job) -> str:
    """Returns the status with which a response begins."""
    return "queued" if job.background or job.queued else "in_progress"


def _completed_at(turn: Turn) -> int | None:
    """Returns the second in which a response completed; it follows from the stream, so every reader has the same."""
    if status_of(turn) != "completed" or turn.ledger is None:
        return None
    return int(turn.job.created + turn.ledger.whole_s)


def _cut_off(turn: Turn) -> bool:
    return any(end.reason == "length" for end in turn.ends)


def _incomplete_details(turn: Turn) -> dict[str, str] | None:
    return {"reason": "max_output_tokens"} if turn.state is TurnState.COMPLETED and _cut_off(turn) else None


def _error(turn: Turn) -> dict[str, Any] | None:
    """Returns the ``error`` of a failed response. OpenAI's API has few codes, so ours is added as ``type``."""
    last = Chunk(first=1, epoch=0, terminal=turn.state, code=turn.code, message=turn.message)
    error = failure(last, turn.job.reply) if turn.state not in (TurnState.OPENED, TurnState.CANCELLED) else None
    if error is None:
        return None
    code = "invalid_prompt" if error.kind == "invalid" else "server_error"
    return {"code": code, "message": error.message, "type": error.code, "param": error.param}
