"""A turn without its words: what stays of it when they must not, and under which marks that is known. Pure.

A chain of turns is named after its first one, so a mark says which of the two it means.
"""

from dataclasses import replace

from axon.domain import reply
from axon.domain.turn import Turn

TURN, SESSION = "turn/", "session/"
"""How the mark of an erased turn begins, and that of an erased session."""


def turn_mark(turn_id: str) -> str:
    """Says that one turn's words must stay away."""
    return TURN + turn_id


def session_mark(session: str) -> str:
    """Says that the words of all of a session's turns must."""
    return SESSION + session


def without_words(turn: Turn) -> Turn:
    """Ids, state, times and usage stay; prompt, items, tokens and everything the client wrote go."""
    job = replace(
        turn.job,
        prompt_ids=(),
        more_prompts=(),
        items=(),
        reply=reply.without_words(turn.job.reply),
        extra={},
        idempotency_key="",
        body_digest="",
    )
    return replace(turn, job=job, tokens=(), ends=(), message="", extra={})
