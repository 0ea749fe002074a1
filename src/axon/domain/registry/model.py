"""A model of the registry: a name under which versions are registered. Knows no files and no workers."""

from dataclasses import dataclass
from enum import StrEnum

from axon.domain.model.embeds import Embeds


class Capability(StrEnum):
    """Something that a model can do."""

    CHAT = "chat"
    TOOLS = "tools"
    REASONING = "reasoning"
    EMBEDDINGS = "embeddings"
    CLASSIFICATION = "classification"
    RERANKING = "reranking"
    """Reads a query and a document together; models with embeddings compare their vectors instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A registered model. Its weights belong to its versions."""

    name: str
    capabilities: tuple[Capability, ...] = (Capability.CHAT,)
    max_model_len: int = 0
    """Context length in tokens that its makers state; 0 if unknown."""
    licence: str = ""
    created: float
    revision: int = 1
    """Number of the record's last change, which the store gives; a change compares it, so that none is overwritten
    unseen."""


def vector_capabilities(embeds: Embeds) -> tuple[Capability, ...]:
    """What a model that gives vectors can do: a classifier with one class is a cross-encoder too."""
    if embeds.classes is None:
        return (Capability.EMBEDDINGS,)
    reranks = (Capability.RERANKING,) if embeds.classes.is_one else ()
    return (Capability.CLASSIFICATION, *reranks)
