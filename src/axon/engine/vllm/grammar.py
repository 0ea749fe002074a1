"""Axon's grammars in vLLM: its guidance backend takes them as they are, and a replay goes on within its grammar.

Both reach behind vLLM's own interface: its requests have room for a schema, a regex or rules, and Axon's grammars may
be several of these, each named in another. A release in which this is not possible refuses the sequence by name.
"""

import time
from collections.abc import Callable
from typing import Any

_SERIALISED = '{"grammars":'
"""How a grammar begins that llguidance takes as it is."""
_TIMEOUT_S = 5.0
_LOOK_S = 0.001


def take_grammars() -> None:
    """Has vLLM's guidance backend hand Axon's grammars to llguidance as they are."""
    from vllm.v1.structured_output import backend_guidance

    backend_guidance.serialize_guidance_grammar = as_they_are(backend_guidance.serialize_guidance_grammar)


def as_they_are(serialise: Callable[..., str]) -> Callable[..., str]:
    """A function that serialises what is not serialised yet."""

    def serialised(kind: Any, grammar: Any, *more: Any, **named: Any) -> str:
        if isinstance(grammar, str) and grammar.startswith(_SERIALISED):
            return grammar
        return serialise(kind, grammar, *more, **named)

    return serialised


def follow(request: Any, token_ids: list[int]) -> None:
    """Waits until a request's grammar is compiled, and takes it over the tokens; raises ``ValueError`` if they do not
    follow it. Nothing is computed meanwhile: it is for the few sequences that a failover brings."""
    structured, deadline = request.structured_output_request, time.monotonic() + _TIMEOUT_S
    while not structured.is_grammar_ready:
        if time.monotonic() > deadline:
            raise ValueError(f"the grammar took longer than {_TIMEOUT_S:g} s to compile")
        time.sleep(_LOOK_S)
    grammar = structured.grammar
    if isinstance(grammar, Exception):
        raise ValueError(f"the grammar cannot be compiled: {grammar}")
    if not grammar.accept_tokens(request.request_id, token_ids):
        raise ValueError("the tokens that were emitted before do not follow the grammar")
