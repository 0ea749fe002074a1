"""A turn without its words: what stays of it when they must not. Pure."""

from dataclasses import replace

from axon.domain.turn import Turn


def without_words(turn: Turn) -> Turn:
    """Ids, state, times and usage stay; prompt, items, tokens and everything the client wrote go."""
    job = replace(turn.job, prompt_ids=(), items=(), reply={}, extra={}, idempotency_key="", body_digest="")
    return replace(turn, job=job, tokens=(), ends=(), message="", extra={})
