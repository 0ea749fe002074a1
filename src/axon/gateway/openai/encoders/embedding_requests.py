"""The body of an embeddings request, and our values made from it. Knows no HTTP and no tokenizer."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from axon.domain.model.embeds import Embeds
from axon.errors import InvalidInput, Unsupported
from axon.gateway.openai.encoders.encoder_requests import InputsRequest
from axon.gateway.turn.kind import Kind
from axon.sessions.embedding_inputs import Input


class EmbeddingRequest(InputsRequest):
    """Body of POST /v1/embeddings."""

    encoding_format: Literal["float", "base64"] | None = None
    """``float``, the default, gives lists of numbers; ``base64`` gives float32 numbers (little-endian) as base64."""
    dimensions: Annotated[int, Field(ge=1, lt=1 << 20)] | None = None
    """Size of the vectors, where the model's configuration says that they may be cut (Matryoshka)."""
    prompt_name: Annotated[str, Field(max_length=256)] | None = None
    """Puts the prompt of this name before every text, as the model's configuration has it, such as ``query``."""

    @property
    def kind(self) -> Kind:
        """Vectors."""
        return Kind.VECTORS

    def texts(self, embeds: Embeds) -> Sequence[Input]:
        """Returns the inputs with the prompt before each text; raises for a prompt or a size that the model lacks."""
        self.size(embeds)
        name, known = self.prompt_name or embeds.default_prompt, dict(embeds.prompts)
        if self.prompt_name and self.prompt_name not in known:
            names = ", ".join(f"'{each}'" for each in known) or "none"
            raise InvalidInput(
                f"The model '{self.model}' has no prompt '{self.prompt_name}'; it has: {names}.", param="prompt_name"
            )
        prefix = known.get(name, "")
        return [prefix + each if isinstance(each, str) else each for each in self.inputs()] if prefix else self.inputs()

    def size(self, embeds: Embeds) -> int:
        """Returns the size of the vectors; raises ``Unsupported`` if the model's cannot be cut to the asked one."""
        if self.dimensions is None or self.dimensions == embeds.dimensions:
            return embeds.dimensions
        if not embeds.allows(self.dimensions):
            sizes = f"{embeds.dimensions} and smaller" if embeds.any_shorter else _listed(embeds)
            raise Unsupported(
                f"The vectors of '{self.model}' cannot have this size; it allows {sizes}.", param="dimensions"
            )
        return self.dimensions


def _listed(embeds: Embeds) -> str:
    return ", ".join(map(str, sorted({*embeds.shorter, embeds.dimensions})))
