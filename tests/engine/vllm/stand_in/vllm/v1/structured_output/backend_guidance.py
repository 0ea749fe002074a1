"""The function that Axon puts itself before."""

from typing import Any


def serialize_guidance_grammar(kind: Any, grammar: Any) -> str:
    """As it stands in vLLM, it takes rules and no whole grammar of llguidance."""
    raise ValueError("not a grammar in Lark's format")
