"""Limits of a step, as a value: how many prompt and draft tokens it may take on; and the Protocol of what sets them.

A controller decides before each step and is told afterwards how long the step took. It reads no clock.
"""

import sys
from dataclasses import dataclass
from typing import Protocol

from axon.engine.batch import Batch
from axon.engine.drafts import NOTHING_DRAFTED, Drafted
from axon.engine.schedule.limits.draft_choice import DraftCosts

NO_DRAFTS = 1.0
"""The draft price at which no draft token is worth its cost: the scheduler drafts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLimits:
    """The limits of one step on work beside the next token of each stream."""

    max_prefill_tokens: int
    """Prompt tokens that the step may compute while answers stream. At 0 the prompts pause for this step."""
    draft_price: float = NO_DRAFTS
    """Cost of computing one draft token, as a fraction of the value of one certain token.

    With a price below ``NO_DRAFTS`` each step must be settled before the next one is scheduled.
    """
    draft_costs: DraftCosts | None = None
    """What drafts of the draft model cost; None where it drafts nothing."""
    max_drafts: int = sys.maxsize
    """Most draft tokens of the step, of all streams together."""

    @property
    def has_drafts(self) -> bool:
        """Whether the step may have drafts: then the one before it must be settled before it is planned."""
        return self.draft_price < NO_DRAFTS or self.draft_costs is not None


@dataclass(frozen=True, slots=True)
class Outlook:
    """The work of the next step without any prompt, and the position of the prompt that would be prefilled next."""

    num_streams: int = 0
    """Sequences that decode one token."""
    num_attended: int = 0
    """Tokens that all streams together attend to."""
    prompt_at: int = 0
    """Tokens of the next prompt that are computed already."""
    num_interrupted: int = 0
    """Tokens that interrupted streams have to compute again before they go on."""


@dataclass(frozen=True, slots=True)
class ExpectedDrafts:
    """The tokens that looked-up drafts would bring in the next step, and cost."""

    num_accepted: float = 0.0
    """Drafts that are expected to be right."""
    num_drafts: int = 0


class Forecast(Protocol):
    """The scheduler as a controller may ask it before a step."""

    @property
    def has_prompts(self) -> bool:
        """Whether the next step may compute prompt tokens."""
        ...

    def outlook(self) -> Outlook:
        """The work that stands before the next step."""
        ...

    def expected_lookups(self, price: float) -> ExpectedDrafts:
        """What drafts out of the streams' own texts would bring at this price, with the step in flight settled."""
        ...

    def would_ask(self, costs: DraftCosts) -> bool:
        """Whether the draft model would be asked for anything at these costs."""
        ...


class StepController(Protocol):
    """Sets the limits of each step."""

    def limits(self, forecast: Forecast) -> StepLimits:
        """The limits of the next step."""
        ...

    def observe(self, batch: Batch, *, step_s: float, compute_s: float, drafted: Drafted = NOTHING_DRAFTED) -> None:
        """Learns from a finished step.

        ``step_s`` is the wall time of the whole step with its planning, ``compute_s`` the time of the batch alone.
        Both are without the time of the draft model, which ``drafted`` has.
        """
        ...


class FixedController:
    """Sets the same limits for every step and learns nothing."""

    def __init__(self, limits: StepLimits) -> None:
        self._limits = limits

    def limits(self, forecast: Forecast) -> StepLimits:
        """The limits it was made with."""
        return self._limits

    def observe(self, batch: Batch, *, step_s: float, compute_s: float, drafted: Drafted = NOTHING_DRAFTED) -> None:
        """Ignores the step."""
