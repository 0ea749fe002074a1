"""One version of a deployment as its workers announce it and gateways render prompts for it. Knows no weights."""

from dataclasses import dataclass

from axon.domain.model.embeds import Embeds


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedVersion:
    """The version of a deployment that answers a request."""

    name: str
    """The deployment's name."""
    version: str
    """The version's id; another one for other weights, tokenizer, template or kernel."""
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
    call_format: str = ""
    """The format in which the model writes tool calls, if the operator has set it; else its chat template says it."""
    embeds: Embeds | None = None
    """Set for an embedding model, which gives vectors and no text."""
