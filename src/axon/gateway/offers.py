"""The models that this gateway offers: each deployment with its workers as last seen, its tokenizer and its template.
Knows no queue and no engine."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from axon.domain.served_version import ServedVersion
from axon.errors import NotFound, Unavailable
from axon.gateway.fleet import Fleet
from axon.sessions.prompt import Prompts


class Offer:
    """One deployment at this gateway."""

    def __init__(self, fleet: Fleet, prompts: Prompts) -> None:
        self.fleet = fleet
        self._text = prompts
        self._prompts: Prompts | None = None

    @property
    def name(self) -> str:
        return self.fleet.name

    @property
    def served(self) -> ServedVersion:
        """The version that its workers serve; raises ``Unavailable`` until one has been seen."""
        return self.fleet.deployment

    @property
    def prompts(self) -> Prompts:
        """Its tokenizer and template, for the context length that its workers serve."""
        max_model_len = self.served.max_model_len
        if self._prompts is None or self._prompts.max_model_len != max_model_len:
            self._prompts = self._text.within(max_model_len)
        return self._prompts

    def close(self) -> None:
        self._text.close()


class Offers:
    """All deployments that this gateway offers, in the order of the settings."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self._offers = {offer.name: offer for offer in offers}

    def find(self, name: str, allows: Callable[[str], bool]) -> Offer:
        """The deployment that a request names; raises ``NotFound`` if there is none. One that the tenant may not use
        gets the same error as an unknown one. Raises ``Unavailable`` until a worker that serves it has been seen."""
        offer = self._offers.get(name)
        if offer is None or not allows(name):
            available = ", ".join(each for each in self._offers if allows(each))
            raise NotFound(
                f"The model '{name}' does not exist. Available: {available or 'none'}.",
                code="model_not_found",
                param="model",
            )
        if not offer.fleet.known:
            raise offer.fleet.problem()
        return offer

    def listed(self, allows: Callable[[str], bool]) -> Sequence[ServedVersion]:
        """What the tenant may use and a worker has been seen for."""
        return [offer.served for offer in self._offers.values() if offer.fleet.known and allows(offer.name)]

    def tokens_per_s(self, deployment: str, pool: str) -> float | None:
        """Tokens per second that a pool of a deployment serves when it is busy; None if unknown."""
        offer = self._offers.get(deployment)
        return offer.fleet.tokens_per_s(pool) if offer else None

    @property
    def known(self) -> bool:
        """Whether a worker of any deployment has ever been seen."""
        return any(offer.fleet.known for offer in self._offers.values())

    def problem(self) -> Unavailable:
        """The error that says why no deployment is known yet."""
        return next(iter(self._offers.values())).fleet.problem()

    async def watch(self) -> None:
        """Updates only the service rates, until cancelled: for a process that has its workers' deployments already."""
        await _together([offer.fleet.watch for offer in self._offers.values()])

    async def run(self) -> None:
        """Reads the workers' announcements, until cancelled."""
        await _together([offer.fleet.run for offer in self._offers.values()])

    def close(self) -> None:
        """Ends the tokenizers' threads."""
        for offer in self._offers.values():
            offer.close()


async def _together(parts: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for part in parts:
            tasks.create_task(part())
