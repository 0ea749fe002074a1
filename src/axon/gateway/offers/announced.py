"""A deployment without a record in the registry: its workers' announcements say which version it serves."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Presence
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.model import Capability, vector_capabilities
from axon.domain.registry.price import Price
from axon.domain.session.pin import Known
from axon.errors import Unavailable
from axon.gateway.offers.fleet import Fleet
from axon.gateway.offers.offer import Listed
from axon.gateway.offers.wait import State
from axon.sessions.prompt import Prompts

_logger = structlog.get_logger("axon.gateway")


def elected(presences: Sequence[Presence], text: str) -> ServedVersion | None:
    """Returns the version that most workers serve; draining workers count only if all are draining.

    ``text`` identifies the gateway's tokenizer and template. Workers with others are left out, because the same token
    ids would be another text to them. Returns None if no worker is left. Pure.
    """
    usable = [presence for presence in presences if presence.deployment.text == text]
    if not usable:
        return None
    votes = Counter(presence.deployment.version for presence in usable if not presence.draining)
    votes = votes or Counter(presence.deployment.version for presence in usable)
    # At equal numbers the newer version wins, which is the one being rolled out.
    newest = {
        version: max(each.deployment.created for each in usable if each.deployment.version == version)
        for version in votes
    }
    version = max(votes, key=lambda each: (votes[each], newest[each], each))
    same = [presence.deployment for presence in usable if presence.deployment.version == version]
    return min(same, key=lambda served: served.created)


class AnnouncedOffer:
    """A deployment that is known from its workers alone; while there are none, it keeps what it last heard."""

    def __init__(
        self,
        fleet: Fleet,
        prompts: Prompts,
        *,
        text: str,
        num_lanes: int,
        learned: Callable[[ServedVersion], None],
        served: ServedVersion | None = None,
    ) -> None:
        """``learned`` is called with each new version that the workers serve. ``served`` is given where it is known
        without their announcements."""
        self.fleet = fleet
        self._prompts, self._text, self._num_lanes, self._learned = prompts, text, num_lanes, learned
        self._bounded: dict[int, Prompts] = {}
        self._stable: ServedVersion | None = None
        self._versions: dict[str, ServedVersion] = {}
        self._deployment: Deployment | None = None
        self._is_mismatched = False
        fleet.on_learned.append(self._learn)
        if served is not None:
            self._take(served, {served.version: served})

    @property
    def name(self) -> str:
        return self.fleet.name

    @property
    def is_known(self) -> bool:
        """Whether a worker has ever been seen."""
        return self._stable is not None

    def problem(self) -> Unavailable:
        """Returns the error that says why no version is known yet."""
        return self.fleet.mismatch() if self._is_mismatched else self.fleet.no_worker()

    @property
    def deployment(self) -> Deployment:
        """A deployment of all versions that workers serve, with the elected one as its stable version."""
        if self._deployment is None:
            raise self.problem()
        return self._deployment

    @property
    def is_fresh(self) -> bool:
        return True

    def pool(self, name: str) -> str:
        """Raises ``Unavailable`` if the pool has no worker: nobody starts one for a deployment without a record."""
        return self.fleet.pool(name)

    def awaits_worker(self, version: str, pool: str) -> bool:
        """False: its workers come and go by themselves."""
        return False

    def starts_in_time(self) -> bool:
        return False

    def known(self) -> Known:
        """Every version that a worker announces is ready; a session on any other one is moved."""
        return Known(states={member.version: member.state for member in self.deployment.members})

    def check_open(self, version: str) -> None:
        """Nothing: nobody closes a version that has no record."""

    def served(self, version: str) -> ServedVersion:
        return self._versions[version]

    async def prompts(self, version: str) -> Prompts:
        max_model_len = self._versions[version].max_model_len
        if max_model_len not in self._bounded:
            self._bounded = {max_model_len: self._prompts.within(max_model_len)}
        return self._bounded[max_model_len]

    def price(self, version: str, *, at: float) -> Price | None:
        """None: a version that is not registered has no price."""
        return None

    def listed(self) -> Listed:
        assert self._stable is not None, "an offer that is not known is not listed"
        state = State.READY if self.fleet.versions else State.LOADING
        embeds = self._stable.embeds
        capabilities = vector_capabilities(embeds) if embeds else (Capability.CHAT,)
        return Listed(served=self._stable, state=state, capabilities=capabilities)

    def _learn(self, presences: Sequence[Presence]) -> None:
        found = elected(presences, self._text)
        if found is None:
            if presences and not self._is_mismatched:
                hint = "start workers and gateway with the same model"
                _logger.error("fleet.model_mismatch", model=self.name, text_digest=self._text, hint=hint)
            self._is_mismatched = bool(presences)
            return
        self._is_mismatched = False
        if self._stable is not None and self._stable.version == found.version:
            found = replace(found, created=self._stable.created)
        usable = [presence.deployment for presence in presences if presence.deployment.text == self._text]
        self._take(found, {each.version: each for each in usable} | {found.version: found})

    def _take(self, found: ServedVersion, versions: dict[str, ServedVersion]) -> None:
        if found == self._stable and versions.keys() == self._versions.keys():
            return
        is_news, self._stable = found != self._stable, found
        self._versions = versions
        self._deployment = Deployment(
            name=self.name,
            model=self.name,
            members=tuple(Member(version=version, state=MemberState.READY) for version in sorted(versions)),
            stable=found.version,
            num_lanes=self._num_lanes,
            created=found.created,
        )
        if is_news:
            _logger.info("fleet.deployment", model=found.name, version=found.version, num_versions=len(versions))
            self._learned(found)
