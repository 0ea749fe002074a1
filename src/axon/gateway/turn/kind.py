"""What a request wants of a model: text, vectors, classes or scores of pairs. Decides whether the model can give it."""

from enum import StrEnum

from axon.domain.model.served_version import ServedVersion
from axon.errors import Unsupported


class Kind(StrEnum):
    """What a request wants of a model."""

    TEXT = "text"
    VECTORS = "embeddings"
    CLASSES = "classification"
    SCORES = "scores"
    """It wants scores of pairs of texts: cosines of their vectors, or what a cross-encoder gives."""


def check_kind(served: ServedVersion, kind: Kind) -> None:
    """Raises ``Unsupported`` if the model cannot give what is wanted of it."""
    if kind not in kinds_of(served):
        raise Unsupported(f"The model '{served.name}' {_does(served)}.", code="model_not_supported", param="model")


def kinds_of(served: ServedVersion) -> frozenset[Kind]:
    """What the model can give."""
    if served.embeds is None:
        return frozenset({Kind.TEXT})
    if served.embeds.classes is None:
        return frozenset({Kind.VECTORS, Kind.SCORES})
    return frozenset({Kind.CLASSES, Kind.SCORES} if served.embeds.classes.is_one else {Kind.CLASSES})


def _does(served: ServedVersion) -> str:
    if served.embeds is None:
        return (
            "writes text and gives no embeddings, classes or scores; ask a model whose 'capabilities' in "
            "GET /v1/models name them"
        )
    if served.embeds.classes is None:
        return "is an embedding model and writes no text; it answers POST /v1/embeddings, /v1/rerank and /v1/score"
    if served.embeds.classes.is_one:
        return "is a cross-encoder, without text and embeddings; it answers POST /v1/rerank, /v1/score and /v1/classify"
    return "is a classification model, without text, embeddings and scores of pairs; it answers POST /v1/classify"
