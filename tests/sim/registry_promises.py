"""The promises of the registry, rollouts and drains, checked in a simulation. They know no fault."""

from collections.abc import Sequence

from axon.adapters.queue.memory import MemoryBroker
from axon.domain.fairness.lane import lane_names
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.snapshot import Snapshot
from axon.domain.turn import Turn
from axon.errors import Unavailable
from axon.registry.follower import RegistryFollower
from tests.sim.loop import SimLoop
from tests.sim.registry_nodes import (
    NAME,
    NUM_LANES,
    PIN_S,
    SLACK_S,
    UNACCEPTED_S,
    VIEW_S,
    Node,
    RegistryHistory,
    pinned_keys,
)
from tests.sim.registry_store import SimRegistry


class Promises:
    """What must hold at every change of the registry and at every accepted turn; breaking one ends the run."""

    def __init__(
        self,
        registry: SimRegistry,
        history: RegistryHistory,
        loop: SimLoop,
        *,
        nodes: Sequence[Node],
        broker: MemoryBroker,
        max_age_s: float,
    ) -> None:
        self._registry, self._history, self._loop = registry, history, loop
        self._nodes, self._broker, self._max_age_s = nodes, broker, max_age_s
        self._pinned: dict[tuple[str, int], str] = {}
        """By key and generation of a pin: the version of the first turn under it."""
        self.resolved_at: dict[str, float] = {}
        """By turn: when its version was decided."""

    def seen(self, node: Node, view: RegistryFollower) -> Deployment:
        """The deployment as a gateway sees it. If the view says that it is fresh, it has missed nothing old."""
        if (deployment := view.snapshot.deployments.get(NAME)) is None:
            raise Unavailable
        now = self._loop.monotonic()
        oldest = self._registry.between(now - VIEW_S - SLACK_S, now)[0].revision
        is_excused = self._registry.lagged_at >= now - VIEW_S
        if view.is_fresh and view.snapshot.revision < oldest and not is_excused:
            raise self._history.broken(f"{node.name} holds {view.snapshot.revision} as fresh, and {oldest} is old")
        return deployment

    def took(self, node: Node, seen: list[Snapshot], snapshot: Snapshot) -> None:
        """A gateway's view never goes back."""
        if seen and snapshot.revision < seen[-1].revision:
            raise self._history.broken(f"{node.name} went back from {seen[-1].revision} to {snapshot.revision}")
        seen[:] = [snapshot]

    def check_begun(self, chosen: tuple[str, str, float]) -> None:
        """A session begins on another version than the stable one only while a rollout gives it sessions."""
        version, stable, at = chosen
        lately = [each.deployments[NAME] for each in self._registry.between(at - VIEW_S - SLACK_S, at)]
        is_excused = version == stable or self._registry.lagged_at >= at - VIEW_S
        if not is_excused and not any(_begins_on(each, version) for each in lately):
            raise self._history.broken(f"a session began on {version}, which has had no share for a while")

    def opened(self, turn: Turn) -> None:
        """A turn is accepted only on a version that is there, and on its session's own."""
        version = turn.job.version
        if not turn.state.terminal and self._registry.newest.deployments[NAME].member(version) is None:
            raise self._history.broken(f"{turn.id} was accepted on {version}, which is removed")
        self._check_pin(turn)

    def _check_pin(self, turn: Turn) -> None:
        """The turns of one generation of a session are on one version, unless ``live`` has forgotten it lately or the
        turn was accepted so late that its pin had expired."""
        job, now = turn.job, self._loop.monotonic()
        first = self._pinned.setdefault((job.pin, job.generation), job.version) if job.pin else job.version
        is_forgotten = any(at > now - 2 * UNACCEPTED_S for at in self._history.flushes)
        is_late = now - self.resolved_at[turn.id] > UNACCEPTED_S
        if first != job.version and not is_forgotten and not is_late:
            raise self._history.broken(f"{turn.id} is on {job.version}, and its session on {first}")

    def closed(self, deployment: Deployment, version: str) -> None:
        """No session was pinned to it, of all that control could know when it looked; unless it was old."""
        member, acting = deployment.member(version), self._history.acting
        node = next((node for node in self._nodes if node.process is acting), None)
        if member is None or node is None or "drains" not in node.parts:
            return
        began = node.parts["drains"].began
        known = [turn for turn in self._history.opened.values() if self._history.opened_at[turn.id][0] < began]
        since = self._loop.now() - PIN_S
        before = next(s.deployments[NAME] for s in reversed(self._registry.between(-1.0, 1e9)[:-1]))
        was = before.member(version)
        is_old = was is not None and self._loop.now() - was.since >= self._max_age_s
        if not is_old and (keys := list(pinned_keys(known, version, since=since))):
            raise self._history.broken(f"{version} was closed, and {len(keys)} sessions were on it")

    def removed(self, deployment: Deployment, version: str) -> None:
        """Nobody needs a version that is removed: no turn, no session, no job."""
        turns = self._history.opened.values()
        left = [each.id for each in turns if each.job.version == version and each.id not in self._history.ends]
        if left:
            raise self._history.broken(f"{version} was removed, and {left} have not ended")
        if keys := list(pinned_keys(turns, version, since=self._loop.now() - PIN_S)):
            raise self._history.broken(f"{version} was removed, and {len(keys)} sessions are on it")
        member = deployment.member(version)
        assert member is not None
        lanes = lane_names(NAME, NUM_LANES, letter=member.letter)
        if sum(map(self._broker.depth, lanes)):
            raise self._history.broken(f"{version} was removed, and jobs wait in its lanes")


def _begins_on(deployment: Deployment, version: str) -> bool:
    rollout = deployment.rollout
    is_rolled_out = rollout is not None and rollout.new == version and rollout.share > 0
    return deployment.stable == version or is_rolled_out
