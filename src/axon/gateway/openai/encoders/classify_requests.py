"""The body of a classification request, and the answer's data. Knows no HTTP and no tokenizer."""

from collections.abc import Sequence
from typing import Any

from axon.domain.model.classes import Classes
from axon.domain.model.embeds import Embeds
from axon.gateway.openai.encoders.encoder_requests import InputsRequest
from axon.gateway.turn.kind import Kind
from axon.sessions.embedding_inputs import Input


class ClassifyRequest(InputsRequest):
    """Body of POST /v1/classify, as vLLM has it."""

    model: str
    """The deployment's name, as ``GET /v1/models`` lists it; it must be a classification model."""
    use_activation: bool | None = None
    """``false`` gives the model's logits in ``probs`` instead of probabilities."""

    @property
    def kind(self) -> Kind:
        """Classes."""
        return Kind.CLASSES

    def texts(self, embeds: Embeds) -> Sequence[Input]:
        """Returns the inputs as a list, whether one or several were given."""
        return self.inputs()


def class_body(index: int, classes: Classes, logits: Sequence[float], *, use_activation: bool) -> dict[str, Any]:
    """Returns what is found for one input: the likeliest class, the first of several, and the scores of all."""
    scores = classes.scores(logits) if use_activation else list(logits)
    best = max(range(len(logits)), key=lambda place: logits[place])
    return {"index": index, "label": classes.labels[best], "probs": scores, "num_classes": len(scores)}
