"""What Ollama's clients learn of a model."""

from dataclasses import replace

from axon.domain.model.embeds import Embeds
from axon.gateway.ollama.models import _capabilities
from tests.contracts.builders import make_presence

SERVED = make_presence().deployment


def test_a_model_that_embeds_cannot_chat() -> None:
    assert _capabilities(replace(SERVED, embeds=Embeds(dimensions=8))) == ["embedding"]


def test_a_model_that_chats_takes_tools_and_may_think() -> None:
    assert _capabilities(replace(SERVED, reasons=False)) == ["completion", "tools"]
    assert _capabilities(replace(SERVED, reasons=True)) == ["completion", "tools", "thinking"]
