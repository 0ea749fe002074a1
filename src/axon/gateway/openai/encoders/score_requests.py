"""The bodies of rerank and score requests, and the texts that are compared. Knows no HTTP and no tokenizer."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from axon.domain.model.embeds import Embeds
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many
from axon.gateway.openai.encoders.encoder_requests import MAX_INPUTS, EncoderRequest
from axon.gateway.turn.kind import Kind
from axon.sessions.embedding_inputs import Fields, Input, Pair

_QUERY, _DOCUMENT = ("query",), ("document", "passage")
"""Names of the prompts that sentence-transformers puts before queries and before documents."""


class _Compared(EncoderRequest):
    """The fields that both requests share."""

    model: str
    """The deployment's name, as ``GET /v1/models`` lists it; it must be an embedding model or a cross-encoder."""
    use_activation: bool | None = None
    """``false`` gives the logits of a cross-encoder instead of the scores that its configuration makes of them."""

    @property
    def kind(self) -> Kind:
        """Scores of pairs."""
        return Kind.SCORES

    def check_activation(self, embeds: Embeds) -> None:
        """Raises ``Unsupported`` for logits of a model that has none."""
        if self.use_activation is False and embeds.classes is None:
            raise Unsupported(
                f"The model '{self.model}' compares texts by the cosine of their vectors, which has no activation.",
                param="use_activation",
            )


class RerankRequest(_Compared):
    """Body of POST /v1/rerank."""

    max_parts_of: ClassVar[Mapping[str, int]] = {"documents": 4 * MAX_INPUTS}
    query: Annotated[str, Field(min_length=1)]
    """The text that the documents are compared with."""
    documents: Many[str]
    """The texts to put in order, at most 2047."""
    top_n: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    """Returns only this many of the best."""
    return_documents: bool | None = None
    """Repeats each document's text in the answer; true by default."""

    @property
    def fields(self) -> Fields:
        """The fields that errors about texts name."""
        return Fields("documents", "query", 1)

    def check(self) -> None:
        """Raises ``InvalidInput`` if a document is empty, or if there are too many."""
        _check("documents", self.documents, MAX_INPUTS - 1)

    def texts(self, embeds: Embeds) -> Sequence[Input]:
        """The query and then the documents, with the model's prompts for each; for a cross-encoder, a pair of both for
        each document."""
        self.check_activation(embeds)
        if embeds.classes is not None:
            return [Pair(self.query, each) for each in self.documents]
        before = _prompt(embeds, _DOCUMENT)
        return [_prompt(embeds, _QUERY) + self.query, *(before + each for each in self.documents)]


class ScoreRequest(_Compared):
    """Body of POST /v1/score."""

    max_parts_of: ClassVar[Mapping[str, int]] = {"text_1": 4 * MAX_INPUTS, "text_2": 4 * MAX_INPUTS}
    text_1: str | Many[str]
    """A text that all of ``text_2`` are compared with, or a list as long as theirs, whose pairs are compared."""
    text_2: str | Many[str]
    """One text or several."""

    @property
    def fields(self) -> Fields:
        """The fields that errors about texts name."""
        return Fields("text_2", "text_1", len(_listed(self.text_1)))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The texts that are compared, as their places in ``texts``."""
        first, second = _listed(self.text_1), _listed(self.text_2)
        return [(at if len(first) > 1 else 0, len(first) + at) for at in range(len(second))]

    def check(self) -> None:
        """Raises ``InvalidInput`` if a text is empty, if there are too many, or if no pairs can be made."""
        first, second = _listed(self.text_1), _listed(self.text_2)
        _check("text_1", first, MAX_INPUTS // 2)
        _check("text_2", second, MAX_INPUTS // 2)
        if len(first) not in (1, len(second)):
            raise InvalidInput("'text_1' must have one text, or as many as 'text_2'.", param="text_1")

    def texts(self, embeds: Embeds) -> Sequence[Input]:
        """All texts, those of ``text_1`` first, without prompts: neither is a query. For a cross-encoder, the pairs."""
        self.check_activation(embeds)
        texts = [*_listed(self.text_1), *_listed(self.text_2)]
        return [Pair(texts[a], texts[b]) for a, b in self.pairs] if embeds.classes else texts


def _listed(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


def _check(field: str, texts: Sequence[str], most: int) -> None:
    if not texts or not all(texts):
        raise InvalidInput(f"'{field}' must not be empty.", param=field)
    if len(texts) > most:
        raise InvalidInput(f"'{field}' has {len(texts)} texts; a request may have {most}.", param=field)


def _prompt(embeds: Embeds, names: Sequence[str]) -> str:
    """The first of these prompts that the model has; empty if it has none."""
    known = dict(embeds.prompts)
    return next((known[name] for name in names if name in known), "")
