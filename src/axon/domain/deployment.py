"""A model version and its settings, as everybody who routes to it knows it. Knows no weights."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What a request's ``model`` names."""

    name: str
    version: str
    """Changes with weights, tokenizer, template or kernel."""
    text: str = ""
    """Changes with tokenizer or template alone: who renders prompts for it must have the same."""
    max_model_len: int
    created: float
    owned_by: str = "axon"
    temperature: float = 1.0
    """What its model works best with; counts where a request does not say."""
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    """Guards a model that tends to repeat itself, in requests that leave both it and the temperature to the server;
    1 changes nothing."""
    reasons: bool = False
    """Whether its model thinks aloud before it answers."""
