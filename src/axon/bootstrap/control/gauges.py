"""Makes the parts of control that only measure, and shows in the metrics what they and the others find."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from axon.bootstrap.process import Part, Process
from axon.bootstrap.services import Services
from axon.control.backlog import Backlog, Show
from axon.control.censuses import Censuses
from axon.control.journal_lag import JournalLag
from axon.domain.census import Census
from axon.domain.fairness.lane import lane_names
from axon.domain.fleet.desired import wanted
from axon.domain.fleet.replica import Group
from axon.domain.presence import Presence
from axon.domain.registry.rollout import WHOLE, RolloutState
from axon.domain.registry.snapshot import Snapshot
from axon.ports.journal import Pending
from axon.registry.follower import RegistryFollower
from axon.runtime.clock import Clock
from axon.settings import Settings
from axon.telemetry.metrics import Metrics

Leads = Callable[[], bool]


def gauge_parts(
    process: Process,
    services: Services,
    registry: RegistryFollower,
    leads: Leads,
    pending: Callable[[], Awaitable[Pending]] | None,
) -> tuple[Part, ...]:
    """The parts that measure the queue, the store and the journal."""
    settings, shown = process.settings, ShownFigures(process.metrics)
    backlog = make_backlog(process, services, registry, shown.backlog, hide=shown.hide_backlog, leads=leads)
    storage, kept_s = services.store.storage, settings.sessions.pin_ttl_s
    census = Censuses(storage, shown.census, process.clock, kept_s=kept_s, hide=shown.hide_census, leads=leads)
    lag = (JournalLag(pending, shown.pending).run,) if pending is not None else ()
    return (backlog.run, census.run, *lag)


def make_backlog(
    process: Process,
    services: Services,
    registry: RegistryFollower,
    show: Show,
    *,
    hide: Callable[[], None] = lambda: None,
    leads: Leads = lambda: True,
) -> Backlog:
    """Makes the part that counts the waiting turns of the settings' models and of the registry's deployments."""
    settings = process.settings
    names = {each.model_name for each in settings.each_model()}
    return Backlog(
        services.queue,
        services.live.presences,
        lambda: sorted(names | registry.snapshot.deployments.keys()),
        lambda presences: lanes_of(settings, registry.snapshot, presences),
        show,
        hide=hide,
        leads=leads,
    )


def lanes_of(
    settings: Settings, snapshot: Snapshot, presences: Mapping[str, Sequence[Presence]]
) -> Mapping[str, Sequence[str]]:
    """The lanes of each model: of every group that the registry has, and of the pools whose workers are there."""
    found: dict[str, list[str]] = {model: [] for model in presences}
    for group, each in wanted(snapshot).items():
        lanes = lane_names(group.deployment, each.deployment.num_lanes, group.pool, group.letter)
        found.setdefault(group.deployment, []).extend(lanes)
    for model, there in presences.items():
        if not found[model]:
            for pool in sorted({"", *(each.pool for each in there)}):
                found[model] += lane_names(model, settings.dispatch.num_lanes, pool)
    return found


class ShownFigures:
    """Sets gauges from figures."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def backlog(self, model: str, num: int, tokens: float) -> None:
        """Shows how many turns of one model wait, and their expected tokens."""
        self._metrics.queue.backlog_requests.labels(model).set(num)
        self._metrics.queue.backlog_tokens.labels(model).set(round(tokens))
        if self._metrics.vllm is not None:
            self._metrics.vllm.waits(model, "queue", num)

    def hide_backlog(self) -> None:
        """Shows no backlog any more: another process counts it."""
        self._metrics.queue.backlog_requests.clear()
        self._metrics.queue.backlog_tokens.clear()
        if self._metrics.vllm is not None:
            self._metrics.vllm.forget("queue")

    def census(self, census: Census) -> None:
        """Shows the sessions, batches and files that the store has."""
        sessions, batches = self._metrics.sessions.sessions, self._metrics.batches
        sessions.labels("active").set(census.active_sessions)
        sessions.labels("idle").set(max(0, census.sessions - census.active_sessions))
        batches.batches.clear()
        for state, num in census.batches.items():
            batches.batches.labels(state).set(num)
        batches.files.clear()
        for purpose, num in census.files.items():
            batches.files.labels(purpose).set(num)

    def hide_census(self) -> None:
        """Shows no census any more: another process takes it."""
        for each in (self._metrics.sessions.sessions, self._metrics.batches.batches, self._metrics.batches.files):
            each.clear()

    def pending(self, pending: Pending) -> None:
        """Shows how far the store is behind the journal."""
        services = self._metrics.services
        services.wal_pending.set(pending.num_records)
        services.wal_oldest.set(pending.oldest_s)
        services.wal_bytes.set(pending.num_bytes)

    def decided(self, group: Group, before: int, after: int, reason: str) -> None:
        """Counts a decision of the autoscaler. The first words of its reason name the signal; figures follow them."""
        direction = "up" if after > before else "down" if after < before else "hold"
        self._metrics.fleet.decisions.labels(str(group), direction, signal_of(reason)).inc()


def signal_of(reason: str) -> str:
    """The signal that a reason of the autoscaler begins with, without figures, so that there are few of them."""
    words = [word for word in reason.replace(":", " :").split() if not any(letter.isdigit() for letter in word)]
    until = words.index(":") if ":" in words else len(words)
    return " ".join(words[:until])[:60]


class ShownRollouts:
    """Shows the rollouts of a registry."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics, self._clock = metrics.rollouts, clock
        self._stuck_since: dict[str, float] = {}
        """By the id of a rollout that cannot go on: the monotonic time at which this control first saw that."""
        self._shown: set[tuple[str, str]] = set()
        """Deployment and new version of each rollout that is shown."""

    def looked(self, snapshot: Snapshot) -> None:
        """Shows every deployment's rollout, and forgets those that are gone."""
        shown, now = self._metrics, self._clock.monotonic()
        before, self._stuck_since = self._stuck_since, {}
        last, self._shown = self._shown, set()
        for deployment in snapshot.deployments.values():
            if (rollout := deployment.rollout) is None:
                continue
            labels = (deployment.name, rollout.new)
            self._shown.add(labels)
            for state in RolloutState:
                shown.state.labels(*labels, state).set(float(rollout.state is state))
            for outcome in (RolloutState.PROMOTED, RolloutState.ABORTED):
                shown.ended.labels(*labels, outcome)  # a counter that begins at 1 would hide its first event
            shown.step.labels(*labels).set(rollout.step + 1)
            shown.share.labels(*labels).set(rollout.share / WHOLE)
            stuck_s = 0.0
            if rollout.reason and not rollout.state.is_over:
                since = self._stuck_since[rollout.id] = before.get(rollout.id, now)
                stuck_s = now - since
            shown.stuck.labels(*labels).set(stuck_s)
        self._remove(last - self._shown)  # not all at first: a scrape would find none

    def hide(self) -> None:
        """Shows no rollout any more: another process leads them."""
        self._remove(self._shown)
        self._stuck_since, self._shown = {}, set()

    def ended(self, deployment: str, version: str, outcome: str) -> None:
        """Counts a rollout that this control has ended."""
        self._metrics.ended.labels(deployment, version, outcome).inc()

    def _remove(self, rollouts: Iterable[tuple[str, str]]) -> None:
        for labels in rollouts:
            for gauge in (self._metrics.step, self._metrics.share, self._metrics.stuck):
                gauge.remove(*labels)
            for state in RolloutState:
                self._metrics.state.remove(*labels, state)
