"""A deployment: one version of a model and its settings, as gateways and workers exchange it. Knows no weights."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The deployment that a request names in ``model``."""

    name: str
    version: str
    """Changes with weights, tokenizer, template or kernel."""
    text: str = ""
    """Fingerprint of tokenizer and template: a gateway may render prompts for it only with the same one."""
    max_model_len: int
    created: float
    owned_by: str = "axon"
    temperature: float = 1.0
    """Sampling default for requests that set none, as the model's makers advise."""
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    """Default repetition penalty, for a model that tends to repeat itself. It applies to requests that set neither the
    penalty nor the temperature; 1 changes nothing."""
    reasons: bool = False
    """Whether the model writes its reasoning before the answer."""
