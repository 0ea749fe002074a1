"""Erasure of a turn's text: the record that remains, and the ids of tombstones. Pure functions.

A chain of turns has the id of its first turn, so a tombstone's prefix says whether it means the turn or the session.
"""

from dataclasses import replace

from axon.domain import reply
from axon.domain.turn import Turn

TURN, SESSION, BLOCKS = "turn/", "session/", "blocks/"
"""Prefixes of the tombstones of an erased turn, of an erased session, and of a session of which a turn was erased: its
copies of KV blocks go too."""


def turn_mark(turn_id: str) -> str:
    """Id of the tombstone that keeps one turn's text out of the store."""
    return TURN + turn_id


def session_mark(session: str) -> str:
    """Id of the tombstone that keeps the text of all turns of a session out of the store."""
    return SESSION + session


def blocks_mark(turn_id: str, session: str) -> str:
    """Id of the tombstone by which engines erase their copies of a session's blocks, because of one of its turns."""
    return f"{BLOCKS}{turn_id}/{session}"


def session_of_blocks(mark: str) -> str:
    """The session whose copies of blocks go with this tombstone; empty for a tombstone that means no blocks."""
    if mark.startswith(SESSION):
        return mark.removeprefix(SESSION)
    return mark.removeprefix(BLOCKS).partition("/")[2] if mark.startswith(BLOCKS) else ""


def without_words(turn: Turn) -> Turn:
    """Returns the turn without text: ids, state, times and usage stay; prompt, items, tokens and client fields go."""
    job = replace(
        turn.job,
        prompt_ids=(),
        more_prompts=(),
        second_starts=(),
        items=(),
        text_parameters=(),
        sampling=replace(turn.job.sampling, grammar="", stop=()),
        reply=reply.without_words(turn.job.reply),
        extra={},
        idempotency_key="",
        body_digest="",
    )
    return replace(turn, job=job, tokens=(), ends=(), message="", extra={})
