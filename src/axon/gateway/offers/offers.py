"""All deployments that a gateway offers: those of the registry, and those that its settings name. Knows no queue."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from axon.admission.line import Line
from axon.domain.fairness.lane import pool_of
from axon.domain.job import Job
from axon.domain.registry.adapter import Adapter
from axon.domain.registry.snapshot import adapter_of, find
from axon.errors import NotFound, Unavailable
from axon.gateway.offers.announced import AnnouncedOffer
from axon.gateway.offers.offer import Listed, Offer
from axon.gateway.offers.registered import RegisteredOffer, View
from axon.gateway.offers.wait import State, Wait
from axon.gateway.offers.watch import Watch

_POLL_S = 1.0
"""Interval at which the workers' presences are read."""
_FIRST_POLL_S = 0.2
"""Interval until the first worker has been seen."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request's ``model`` means at this gateway."""

    offer: Offer
    version: str = ""
    """Id of the version that it asks for; empty for whichever its session is on."""
    earlier: tuple[str, ...] = ()
    """Other names under which a session may have been pinned, if the asked one is an alias: the alias itself, as
    earlier releases did, and the deployments that it stood for before."""
    fallbacks: tuple[Offer, ...] = ()
    """Deployments that may answer in its place, in this order: those that the tenant may use."""
    elsewhere: frozenset[str] = frozenset()
    """Versions of other deployments, if the name is an alias: a session on one of them began before a switch."""
    adapter: Adapter | None = None
    """The LoRA adapter that it names behind a colon."""

    def pin_name(self, deployment: str) -> str:
        """The name under which a session with a deployment is pinned: with another adapter it is another session."""
        return f"{deployment}:{self.adapter.label}" if self.adapter else deployment


class Offers:
    """Finds what a name means. A registered deployment goes before one of the settings with the same name."""

    def __init__(
        self,
        announced: Sequence[AnnouncedOffer],
        view: View,
        registered: Callable[[str], RegisteredOffer],
        watch: Watch | None = None,
    ) -> None:
        """``registered`` makes the offer of a registered deployment; ``watch`` reads who waits for them."""
        self._announced = {offer.name: offer for offer in announced}
        self._view, self._make, self._watch = view, registered, watch
        self._registered: dict[str, RegisteredOffer] = {}

    def find(
        self, name: str, allows: Callable[[str], bool], *, tenant: str = "", with_fallbacks: bool = False
    ) -> Wanted:
        """What a name means; raises ``NotFound`` if the tenant may use nothing of this name, whether or not it exists.

        Raises ``Unavailable`` for a deployment that cannot take requests yet, unless a fallback will do.
        """
        wanted = self._wanted(name, allows) or self._adapted(name, allows, tenant)
        if wanted is None:
            available = ", ".join(offer.name for offer in self._all() if allows(offer.name))
            raise NotFound(
                f"The model '{name}' does not exist. Available: {available or 'none'}.",
                code="model_not_found",
                param="model",
            )
        has_stand_in = with_fallbacks and not wanted.version and any(each.is_known for each in wanted.fallbacks)
        if not wanted.offer.is_known and not has_stand_in:
            raise wanted.offer.problem()
        return wanted

    def names_version(self, name: str, allows: Callable[[str], bool]) -> bool:
        """Whether a name asks for one version of what the tenant may use; there need not be such a version."""
        if (wanted := self._wanted(name, allows)) is not None:
            return wanted.version != ""
        base, at, _ = name.rpartition("@")
        return bool(at) and self._wanted(base, allows) is not None

    def _wanted(self, name: str, allows: Callable[[str], bool]) -> Wanted | None:
        if named := find(self._view.snapshot, name):
            base = name if named.version == "" else name.rpartition("@")[0]
            if not allows(named.deployment.name) and not allows(base):
                return None
            others = named.deployment.fallbacks
            fallbacks = tuple(self._of(each) for each in others if self._is_registered(each) and allows(each))
            alias = self._view.snapshot.aliases.get(base)
            elsewhere = self._versions_but_of(named.deployment.name) if alias else frozenset()
            earlier = (alias.name, *alias.before) if alias else ()
            return Wanted(self._of(named.deployment.name), named.version, earlier, fallbacks, elsewhere)
        offer = self._announced.get(name)
        return Wanted(offer) if offer is not None and allows(name) else None

    def _adapted(self, name: str, allows: Callable[[str], bool], tenant: str) -> Wanted | None:
        """What ``name:adapter`` means: the deployment or alias before the colon, with the adapter behind it. A fallback
        is another model, so that none stands in for it."""
        base, colon, label = name.rpartition(":")
        wanted = self._wanted(base, allows) if colon else None
        if wanted is None or wanted.version:
            return None
        if not wanted.offer.is_known:
            raise wanted.offer.problem()
        adapter = adapter_of(self._view.snapshot, wanted.offer.deployment.model, label, tenant=tenant)
        return replace(wanted, adapter=adapter, fallbacks=()) if adapter is not None else None

    def adapters(self, listed: Listed, tenant: str) -> Sequence[Adapter]:
        """The adapters of a listed deployment that a tenant may use, by name."""
        name = listed.served.name
        registered = self._view.snapshot.deployments.get(name)
        model = registered.model if registered else name
        found = self._view.snapshot.adapters.values()
        return [each for each in found if each.model == model and each.is_for(tenant)]

    def listed(self, allows: Callable[[str], bool]) -> Sequence[Listed]:
        """What the tenant may use, in the order of the settings and then by name."""
        return [offer.listed() for offer in self._all() if offer.is_known and allows(offer.name)]

    def all(self) -> Sequence[Offer]:
        """Every deployment that this gateway offers, in the order of the settings and then by name."""
        return list(self._all())

    def has(self, deployment: str) -> bool:
        """Whether this gateway offers a deployment of this name."""
        return deployment in self._view.snapshot.deployments or deployment in self._announced

    def tokens_per_s(self, deployment: str, pool: str) -> float | None:
        """Tokens per second that a pool of a deployment serves when it is busy; None if unknown."""
        offer = next((offer for offer in self._all() if offer.name == deployment), None)
        return offer.fleet.tokens_per_s(pool) if offer else None

    def await_more(self, deployment: str, pool: str) -> float:
        """Seconds that a turn may wait for more workers of a full pool beyond its tier's promise; 0 if none can
        come."""
        return self._of(deployment).await_more(pool) if self._is_registered(deployment) else 0.0

    def accepted(self, job: Job, line: Line) -> None:
        """Notes that a deployment was asked, and the line that its turn was accepted into."""
        if not self._is_registered(job.deployment):
            return
        if self._watch is not None:
            self._watch.asked(job.deployment)
        if job.queued:
            self._of(job.deployment).saw(pool_of(job.lane, job.deployment), line)

    def wait_of(self, job: Job, *, is_new: bool = False) -> Wait | None:
        """How a turn waits for a worker to start, if it did when it was accepted: for its version's first one, or for
        more than a full pool had; else None.

        Ask only for a turn that no worker has claimed. The first one that a cold deployment is asked finds it cold
        (``is_new``); after that it is loading.
        """
        if not job.queued or not self._is_registered(job.deployment):
            return None
        offer, pool = self._of(job.deployment), pool_of(job.lane, job.deployment)
        wait = offer.wait(job.version, pool, job.queued)
        was_cold = is_new and job.queued == 1 and offer.deployment.may_be_cold
        return replace(wait, state=State.COLD) if wait and was_cold and wait.state is State.LOADING else wait

    @property
    def are_known(self) -> bool:
        """Whether requests for any deployment can be accepted."""
        return any(offer.is_known for offer in self._all())

    def problem(self) -> Unavailable:
        """The error that says why none can."""
        problems = (offer.problem() for offer in self._all())
        return next(problems, Unavailable("No model is deployed yet; add one.", code="no_model"))

    async def run(self) -> None:
        """Reads the workers' announcements and the lines of those without one, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_POLL_S if self.are_known else _FIRST_POLL_S)

    async def look(self) -> None:
        """Reads them once."""
        gone = self._registered.keys() - self._view.snapshot.deployments.keys()
        for name in gone:
            self._registered.pop(name).fleet.hide()
        await asyncio.gather(*(offer.fleet.look() for offer in self._all()))
        if self._watch is not None:
            await self._watch.look([self._of(name) for name in sorted(self._view.snapshot.deployments)])

    def _all(self) -> Iterator[Offer]:
        registered = self._view.snapshot.deployments
        yield from (offer for name, offer in self._announced.items() if name not in registered)
        yield from (self._of(name) for name in sorted(registered))

    def _versions_but_of(self, name: str) -> frozenset[str]:
        others = [each for each in self._view.snapshot.deployments.values() if each.name != name]
        return frozenset(member.version for each in others for member in each.members)

    def _is_registered(self, name: str) -> bool:
        return name in self._view.snapshot.deployments

    def _of(self, name: str) -> RegisteredOffer:
        if name not in self._registered:
            self._registered[name] = self._make(name)
        return self._registered[name]
