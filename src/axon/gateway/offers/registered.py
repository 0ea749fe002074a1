"""A deployment of the registry: its record says which versions there are, whether or not a worker runs one now."""

from collections.abc import Callable
from typing import Protocol

from axon.admission.line import Line
from axon.domain.fleet.growth import Growth, awaited, extra_s, growth_of
from axon.domain.fleet.status import FleetStatus
from axon.domain.model.served_version import ServedVersion
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.model import Capability
from axon.domain.registry.price import Price
from axon.domain.registry.served import served_of
from axon.domain.registry.snapshot import Snapshot, check_open, price_of
from axon.domain.registry.version import Version
from axon.domain.session.pin import Known, known_of
from axon.errors import NotFound, Unavailable
from axon.gateway.offers.fleet import Fleet
from axon.gateway.offers.offer import Listed
from axon.gateway.offers.starts import Starts
from axon.gateway.offers.wait import State, Wait
from axon.sessions.prompt import Prompts


class View(Protocol):
    """The registry as this process last read it."""

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def is_fresh(self) -> bool:
        """Whether it was confirmed within the last second."""

    @property
    def is_awaited(self) -> bool:
        """Whether whoever removes a version waits for this process to hear of it."""


class Texts(Protocol):
    """Tokenizers and templates of versions."""

    async def of(self, version: Version) -> Prompts:
        """Those of a version; they are loaded when they are first asked for."""


class RegisteredOffer:
    """A deployment as its record describes it; ``name`` must be one of the view's."""

    def __init__(
        self,
        name: str,
        view: View,
        fleet: Fleet,
        texts: Texts,
        learned: Callable[[str, int], None],
        now: Callable[[], float],
    ) -> None:
        """``learned`` is called with the deployment's name and context length when a prompt for it is to be read;
        ``now`` returns the monotonic time."""
        self.name, self.fleet, self.starts = name, fleet, Starts()
        self._view, self._texts, self._learned, self._now = view, texts, learned, now
        self._growth: dict[str, Growth] = {}
        """By pool, of those that are full."""

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

    def pool(self, name: str) -> str:
        """Whether or not it has a worker: the turn waits in its lane, and is demand for one."""
        return self.fleet.pool_of(name)

    def awaits_worker(self, version: str, pool: str) -> bool:
        return not self.fleet.has(version, pool)

    def starts_in_time(self) -> bool:
        deployment = self.deployment
        return deployment.may_be_cold and self.starts.is_in_time(
            deployment.stable, deployment.cold_patience_s, self._now()
        )

    def saw(self, pool: str, line: Line) -> None:
        """Records the line of a pool, which a turn has just joined."""
        self.starts.saw(pool, line)
        self.look_at_starts()

    def look_at_starts(self) -> None:
        """Notes since when a worker is wanted, by what was last read of workers and lines."""
        deployment = self.deployment
        has_worker = deployment.stable in self.fleet.versions
        self.starts.look(self._now(), has_worker=has_worker, shall_run=not deployment.may_be_cold)

    def wait(self, version: str, pool: str, queued: int) -> Wait | None:
        """How a turn waits that was the ``queued``-th in line when it was accepted; None if nobody waits any more."""
        line, has_worker = self.starts.line(pool), self.fleet.has(version, pool)
        if (position := min(queued, line.waiting)) < 1:
            return None
        rate, ahead = self.fleet.last_tokens_per_s(pool), line.work * (position - 1) / line.waiting
        start_s = 0.0 if has_worker else self.starts.remaining_s(version, self._now())
        behind_s = ahead / rate if rate else (None if ahead and has_worker else 0.0)
        expected_s = None if start_s is None or behind_s is None else start_s + behind_s
        return Wait(state=State.READY if has_worker else State.LOADING, position=position, expected_s=expected_s)

    def look_at_growth(self, status: FleetStatus | None, reported: float) -> None:
        """Notes which of its full pools may get more workers; ``reported`` is when the report was first read."""
        found = {
            pool: growth_of(self._growth.get(pool), status, self.name, pool, reported=reported)
            for pool in self.fleet.full_pools
        }
        self._growth = {pool: growth for pool, growth in found.items() if growth is not None}

    def await_more(self, pool: str) -> float:
        """Seconds that a turn may wait for more workers of a full pool beyond its tier's promise, and notes that one
        does; 0 if no more can come."""
        growth, now = self._growth.get(pool), self._now()
        seconds = extra_s(growth, patience_s=self.deployment.cold_patience_s, now=now)
        if growth is not None and seconds > 0:
            self._growth[pool] = awaited(growth, now=now)
        return seconds

    def known(self) -> Known:
        """The states of its versions, and for how long those that sessions may stay on have had no worker.

        A version of a deployment that is cold as a whole is not absent: it starts when it is asked.
        """
        deployment = self.deployment
        if deployment.may_be_cold and not self.fleet.versions:
            return known_of(deployment, self._view.snapshot.versions, {}, is_fresh=self.is_fresh)
        staying = (MemberState.READY, MemberState.DRAINING)
        present = [member.version for member in deployment.members if member.state in staying]
        absent_s = {version: self.fleet.absent_s(version) for version in present if version != deployment.stable}
        return known_of(deployment, self._view.snapshot.versions, absent_s, is_fresh=self.is_fresh)

    def check_open(self, version: str) -> None:
        deployment = self._view.snapshot.deployments.get(self.name)
        check_open(deployment, version, is_awaited=self._view.is_awaited)

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
        if deployment.stable in self.starts.failed:
            return State.FAILED
        return State.COLD if deployment.may_be_cold and not self.starts.is_wanted else State.LOADING
