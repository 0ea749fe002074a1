"""The fields that all requests to encoders share: for vectors, classes and scores. Knows no HTTP and no tokenizer."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from axon.domain.tenants.tenant import Tier
from axon.errors import InvalidInput
from axon.gateway.http.body import Many, Wire
from axon.gateway.openai.requests import TierName, tier_asked
from axon.sessions.embedding_inputs import Fields, Input

MAX_INPUTS = 2048
"""A request may have at most this many inputs, as at OpenAI."""


class EncoderRequest(Wire):
    """What every request to an encoder may say."""

    model: str
    """The deployment's name, as ``GET /v1/models`` lists it."""
    truncate_prompt_tokens: Annotated[int, Field(ge=-1, lt=1 << 31)] | None = None
    """Cuts every input to this many tokens, special tokens included, and every pair of texts, the longer one first; -1
    cuts to what the model takes. Without it, what is too long is refused."""
    user: str | None = None
    """Names the end user; nothing depends on it."""
    service_tier: TierName | None = None
    """``priority``, ``default`` or ``flex``; ``auto`` is the tenant's default."""

    @property
    def tier(self) -> Tier:
        """The asked tier; the tenant's terms may lower it."""
        return tier_asked(self.service_tier)


class InputsRequest(EncoderRequest):
    """A request whose inputs are in the field ``input``."""

    max_parts_of: ClassVar[Mapping[str, int]] = {"input": 4 * MAX_INPUTS}
    """More inputs than a request may have, so that a few too many are refused by their number."""
    input: str | Many[str] | Many[int] | Many[Many[int]]
    """One input, as text or token ids, or a list of at most 2048 inputs. Texts get the model's special tokens; token
    ids are taken as they are."""

    @property
    def fields(self) -> Fields:
        """The field that has the inputs."""
        return Fields("input")

    def check(self) -> None:
        """Raises ``InvalidInput`` if an input is empty, or if there are too many."""
        found = self.inputs()
        if not found or not all(found):
            raise InvalidInput("'input' must not be empty.", param="input")
        if len(found) > MAX_INPUTS:
            raise InvalidInput(f"'input' has {len(found)} inputs; a request may have {MAX_INPUTS}.", param="input")

    def inputs(self) -> Sequence[Input]:
        """Returns the inputs as a list, whether one or several were given."""
        given: Any = self.input
        is_one = isinstance(given, str) or (given and isinstance(given[0], int))
        found: list[Input] = [given] if is_one else given
        return found
