"""A deployment of the registry: its record says which versions there are, whether or not a worker runs one now."""

from collections.abc import Callable
from typing import Protocol

from axon.domain.pin import Known, known_of
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.model import Capability
from axon.domain.registry.price import Price
from axon.domain.registry.served import served_of
from axon.domain.registry.snapshot import Snapshot, price_of
from axon.domain.registry.version import Version
from axon.domain.served_version import ServedVersion
from axon.errors import NotFound, Unavailable
from axon.gateway.offers.fleet import Fleet
from axon.gateway.offers.offer import Listed, State
from axon.sessions.prompt import Prompts


class View(Protocol):
    """The registry as this process last read it."""

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def is_fresh(self) -> bool:
        """Whether it was confirmed within the last second."""


class Texts(Protocol):
    """Tokenizers and templates of versions."""

    async def of(self, version: Version) -> Prompts:
        """Those of a version; they are loaded when they are first asked for."""


class RegisteredOffer:
    """A deployment as its record describes it; ``name`` must be one of the view's."""

    def __init__(self, name: str, view: View, fleet: Fleet, texts: Texts, learned: Callable[[str, int], None]) -> None:
        """``learned`` is called with the deployment's name and context length when a prompt for it is to be read."""
        self.name, self.fleet = name, fleet
        self._view, self._texts, self._learned = view, texts, learned

    @property
    def is_known(self) -> bool:
        """Whether it has a stable version: workers may come later, its requests wait for them."""
        return self.deployment.stable in self._view.snapshot.versions

    def problem(self) -> Unavailable:
        return Unavailable(
            f"The deployment '{self.name}' has no version to serve yet; add one to it.", code="no_version"
        )

    @property
    def deployment(self) -> Deployment:
        """The record; raises ``NotFound`` once it is removed."""
        if (found := self._view.snapshot.deployments.get(self.name)) is None:
            raise NotFound(f"The model '{self.name}' does not exist any more.", code="model_not_found", param="model")
        return found

    @property
    def is_fresh(self) -> bool:
        return self._view.is_fresh

    def known(self) -> Known:
        """The states of its versions, and for how long those that sessions may stay on have had no worker."""
        deployment = self.deployment
        staying = (MemberState.READY, MemberState.DRAINING)
        present = [member.version for member in deployment.members if member.state in staying]
        absent_s = {version: self.fleet.absent_s(version) for version in present if version != deployment.stable}
        return known_of(deployment, self._view.snapshot.versions, absent_s, is_fresh=self.is_fresh)

    def served(self, version: str) -> ServedVersion:
        return served_of(self._view.snapshot.versions[version], self.deployment)

    async def prompts(self, version: str) -> Prompts:
        record = self._view.snapshot.versions[version]
        self._learned(self.name, record.max_model_len)
        return (await self._texts.of(record)).within(record.max_model_len)

    def price(self, version: str, *, at: float) -> Price | None:
        return price_of(self._view.snapshot, version, at=at)

    def listed(self) -> Listed:
        snapshot, deployment = self._view.snapshot, self.deployment
        model, version = snapshot.models.get(deployment.model), snapshot.versions[deployment.stable]
        return Listed(
            served=served_of(version, deployment),
            state=self._state(deployment),
            capabilities=model.capabilities if model else (Capability.CHAT,),
            label=version.label,
        )

    def _state(self, deployment: Deployment) -> State:
        if deployment.stable in self.fleet.versions:
            return State.READY
        return State.LOADING if deployment.min_replicas else State.COLD
