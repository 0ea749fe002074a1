"""A registry in virtual time: admins edit it, controls lead rollouts and drains, gateways begin turns by their views.

Catalog, writer, followers, holders, rollouts, drains, pins and dispatch are production code. Each change of the
registry and each accepted turn is checked when it is made, whoever made it.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from axon.adapters.queue.memory import MemoryBroker, MemoryQueue
from axon.control import drains
from axon.control.drains import Drains, _is_leaving
from axon.control.persister import Persister
from axon.control.rollouts import Rollouts
from axon.control.version_uses import VersionUses
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch
from axon.domain.job import Job
from axon.domain.lane import lane_names, lane_of
from axon.domain.pin import Pin, known_of, pin_key
from axon.domain.presence import Load, Presence
from axon.domain.registry import steps
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.model import Model
from axon.domain.registry.rollout import Rollout
from axon.domain.registry.snapshot import Snapshot, check_open, first_version
from axon.domain.registry.version import Version
from axon.domain.sampling import Sampling
from axon.domain.served_version import ServedVersion
from axon.domain.turn import Turn, TurnState
from axon.domain.wire import decode
from axon.errors import AxonError, Conflict, DependencyDown, Unavailable
from axon.ports.live import Live
from axon.registry import catalog
from axon.registry.catalog import Catalog
from axon.registry.follower import FRESH_S, TRUST_S, RegistryFollower
from axon.registry.holders import Holders
from axon.registry.observations import Observations
from axon.registry.revisions import Revisions
from axon.registry.writer import RegistryWriter
from axon.sessions import pins
from axon.sessions.config import SessionsConfig
from axon.sessions.sessions import make_sessions
from tests.sim.faults import Rates, Through, Way
from tests.sim.history import History, Violation
from tests.sim.loop import SimLoop, Stuck
from tests.sim.processes import Process
from tests.sim.registry_store import SimRegistry
from tests.sim.schedule import Outcome, silence
from tests.sim.services import SimConversations, SimJournal, SimMarkers, SimReader, SimStore, make_live

NAME, NUM_LANES, NUM_SLOTS = "sim", 2, 4
HORIZON_S, SETTLE_S = 110.0, 150.0
PIN_S = 10.0
"""Seconds without a turn after which a session is pinned no more."""
UNACCEPTED_S = 20.0
"""Seconds that a pin stays without an accepted turn, and that a drain lasts at least: shorter than in production, so
that versions come and go while things go wrong."""
ACCEPT_S = 2.0
VIEW_S = FRESH_S + TRUST_S
"""How old the newest state may be that a view which says it is fresh has missed: a writer may have died before it told
``live``, and the store may be away."""
_SLACK_S = 0.01


class RegistryHistory(History):
    """Every turn in order; ``on_opened`` is told each turn when the journal first has it."""

    def __init__(self, time: Callable[[], float]) -> None:
        super().__init__(time)
        self.on_opened: Callable[[Turn], None] = lambda turn: None

    def journalled(self, turn: Turn) -> None:
        is_new = turn.id not in self.opened_at
        super().journalled(turn)
        if is_new:
            self.on_opened(turn)


class CutWay(Way):
    """The way to one service, which may be cut while those to the others are not."""

    is_cut = False

    async def _hop(self, lost: float) -> None:
        if self.is_cut:
            raise DependencyDown("cut off")
        await super()._hop(lost)


class PinStore(SimStore):
    """The turns table, which also counts pins as the real one does."""

    async def count(self, version: str, *, since: float) -> int:
        self._answer()
        return len(set(pinned_keys(self._turns.values(), version, since=since)))


def pinned_keys(turns: Any, version: str, *, since: float) -> Iterator[str]:
    """Keys of the sessions that are on a version, by these turns."""
    highest: dict[str, int] = {}
    turns = [turn for turn in turns if turn.job.pin]
    for turn in turns:
        highest[turn.job.pin] = max(turn.job.generation, highest.get(turn.job.pin, 0))
    for turn in turns:
        job = turn.job
        if job.version == version and job.created >= since and job.generation == highest[job.pin]:
            yield job.pin


@dataclass(slots=True)
class Node:
    name: str
    make: Callable[["Node"], None]
    process: Process = field(init=False)
    parts: dict[str, Any] = field(default_factory=dict)
    ways: dict[str, CutWay] = field(default_factory=dict)


class WatchedDrains(Drains):
    """The drains, with the time at which each look began."""

    began = 0.0

    async def look(self) -> None:
        self.began = self._clock.monotonic()
        await super().look()


class RegistryWorld:
    """Services, processes and a nemesis, all driven by one seed."""

    def __init__(self, seed: int, loop: SimLoop) -> None:
        self.rng, self.loop = random.Random(f"registry {seed}"), loop
        rng = self.rng
        self.history = RegistryHistory(loop.monotonic)
        self.history.on_opened = self._opened
        self.live = make_live(loop, self.history, rng)
        self.registry = SimRegistry(self.history, loop.monotonic, self._closed, self._removed)
        self.markers, self.broker = SimMarkers(), MemoryBroker(clock=loop)
        self.journal, self.store = SimJournal(self.history, self.markers, rng), PinStore(self.history)
        self.rates = Rates(
            lost_call=rng.choice([0, 0.005, 0.03]),
            lost_answer=rng.choice([0, 0.005, 0.03]),
            crash=rng.choice([0, 0.0005, 0.003]),
        )
        self.max_age_s = rng.choice([3600.0, 3600.0, 30.0])
        self._pinned: dict[tuple[str, int], str] = {}
        """By key and generation of a pin: the version of the first turn under it."""
        self._resolved_at: dict[str, float] = {}
        self.num_turns = self._num_labels = self._num_restarts = 0
        self.nodes = [
            *[Node(f"gateway{i}", self._make_gateway) for i in range(2)],
            *[Node(f"control{i}", self._make_control) for i in range(2)],
            *[Node(f"admin{i}", self._make_admin) for i in range(2)],
            *[Node(f"persister{i}", self._make_persister) for i in range(2)],
        ]

    async def begin(self) -> None:
        """The first version is deployed before anybody looks."""
        first = Deployment(
            name=NAME,
            model=NAME,
            members=(Member(version=f"{NAME}@v0", state=MemberState.READY),),
            stable=f"{NAME}@v0",
            num_lanes=NUM_LANES,
            memory_bytes=0,
            cold_patience_s=0.0,
            created=0.0,
        )
        made = Model(name=NAME, created=0.0), _version("v0"), first
        await self.registry.write_all([(None, each) for each in made], actor="sim", at=0.0)
        del self.registry.states[0]  # nobody has seen it empty
        for node in self.nodes:
            self.start(node)

    # --- processes

    def start(self, node: Node) -> None:
        self.history.note(f"{node.name} starts")
        node.process, node.ways = Process(node.name, self._failed), {}
        node.make(node)

    def crashed(self, process: Process) -> None:
        self.history.note(f"{process.name} crashes")
        node = next(node for node in self.nodes if node.process is process)
        process.crash()
        self.loop.call_later(self.rng.uniform(0.1, 5.0), self.start, node)

    def _failed(self, process: Process, error: BaseException) -> None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if process.alive and not isinstance(error, Violation):
            self.history.broken(f"{process.name} failed: {error!r}")

    def _through(self, node: Node, service: str, target: Any) -> Any:
        if service not in node.ways:
            node.ways[service] = CutWay(node.process, self.rates, self.rng, self.crashed, self.history)
        return Through(target, node.ways[service])

    def _live(self, node: Node) -> Live:
        parts = {name: self._through(node, "live", getattr(self.live, name)) for name in Live.__dataclass_fields__}
        return Live(**parts)

    def _sessions(self, node: Node, live: Live) -> Any:
        turns = self._through(node, "store", self.store)
        conversations = self._through(node, "store", SimConversations(self.store))
        kept = SimpleNamespace(turns=turns, conversations=conversations, tombstones=None, pinned=turns)
        journal = self._through(node, "journal", self.journal)
        return make_sessions(live, cast("Any", kept), journal, self.loop, SessionsConfig(pin_ttl_s=PIN_S))

    def _make_gateway(self, node: Node) -> None:
        live, self._num_restarts = self._live(node), self._num_restarts + 1
        queue = MemoryQueue(self.broker)
        queue._open = True
        seen: list[Snapshot] = []
        node.parts = {
            "sessions": self._sessions(node, live),
            "dispatch": Dispatch(
                log=live.log,
                journal=self._through(node, "journal", self.journal),
                queue=self._through(node, "queue", queue),
                wakeups=live.wakeups,
                config=DispatchConfig(num_lanes=NUM_LANES, accept_timeout_s=ACCEPT_S),
                reader_grace_s=3.0,
                is_ours=lambda deployment: True,
            ),
            "view": RegistryFollower(
                self._through(node, "store", self.registry),
                Revisions(live.cache, live.wakeups),
                live.wakeups,
                self.loop,
                holders=Holders(live.cache, num_slots=NUM_SLOTS),
                holder=f"{node.name}-{self._num_restarts}",
                changed=lambda snapshot: self._took(node, seen, snapshot),
            ),
        }
        node.process.spawn(self._serve(node))

    async def _serve(self, node: Node) -> None:
        view: RegistryFollower = node.parts["view"]
        while True:
            try:
                await view.open()
                break
            except AxonError:
                await asyncio.sleep(0.3)
        node.process.spawn(self._ask(node))
        await view.run()

    def _make_control(self, node: Node) -> None:
        live, registry = self._live(node), self._through(node, "store", self.registry)
        writer = RegistryWriter(registry, self.loop, Revisions(live.cache, live.wakeups))
        sessions, queue = self._sessions(node, live), MemoryQueue(self.broker)
        queue._open = True
        uses = VersionUses(
            self._through(node, "store", self.store),
            sessions.lookup,
            sessions.pins,
            self._through(node, "queue", queue),
        )
        draining = WatchedDrains(
            registry,
            writer,
            Holders(live.cache, num_slots=NUM_SLOTS),
            live.leases,
            uses,
            self.loop,
            accept_timeout_s=ACCEPT_S,
            max_age_s=self.max_age_s,
        )
        rollouts = Rollouts(registry, cast("Any", writer), Observations(live.cache), live.presences, self.loop)
        node.parts = {"drains": draining}
        node.process.spawn(draining.run())
        node.process.spawn(rollouts.run())

    def _make_persister(self, node: Node) -> None:
        reader = self._through(node, "journal", SimReader(self.journal))
        turns, markers = self._through(node, "store", self.store), self._through(node, "store", self.markers)
        node.process.spawn(Persister(reader, turns, markers, clock=self.loop).run())

    # --- admins

    def _make_admin(self, node: Node) -> None:
        live, registry = self._live(node), self._through(node, "store", self.registry)
        writer = RegistryWriter(registry, self.loop, Revisions(live.cache, live.wakeups))
        pinned = self._sessions(node, live).pins.count
        node.parts = {"catalog": Catalog(registry, writer, self.loop, pinned=pinned, letter_rest_s=5.0)}
        node.process.spawn(self._administer(node.parts["catalog"]))

    async def _administer(self, admin: Catalog) -> None:
        acts = [self._bump, self._bump, self._bump_as_read, self._roll_out, self._roll_out, self._end_rollout]
        acts += [self._remove_version, self._switch_alias]
        while self.loop.monotonic() < HORIZON_S:
            await asyncio.sleep(self.rng.expovariate(1 / 3.0))
            try:
                await self.rng.choice(acts)(admin)
            except (Conflict, DependencyDown):
                continue  # refused for a reason, or not known to be done
            except AxonError as error:
                if error.code not in ("version_not_found", "rollout_not_found"):
                    raise

    async def _bump(self, admin: Catalog) -> None:
        await admin.change_deployment(NAME, _bumped, actor="admin")

    async def _bump_as_read(self, admin: Catalog) -> None:
        """Reads, thinks, and changes what it has read or nothing."""
        read = (await admin.snapshot()).deployments[NAME]
        await asyncio.sleep(self.rng.uniform(0.0, 3.0))
        made = await admin.change_deployment(NAME, _bumped, revision=read.revision, actor="admin")
        if made.memory_bytes != read.memory_bytes + 1:
            raise self.history.broken(f"a change of revision {read.revision} was made from another one")

    async def _roll_out(self, admin: Catalog) -> None:
        self._num_labels += 1
        made = await admin.add_version(_version(f"v{self._num_labels}"), actor="admin")
        rollout = Rollout(id="", old="", new=made.id, steps=(3000, 7000), bake_s=4.0, began=0.0)
        await admin.start_rollout(NAME, rollout, actor="admin")

    async def _end_rollout(self, admin: Catalog) -> None:
        ends: list[Callable[[Deployment], Deployment]] = [
            lambda deployment: steps.promote(deployment, now=self.loop.now()),
            lambda deployment: steps.rollback(deployment, now=self.loop.now()),
            lambda deployment: steps.abort(deployment, now=self.loop.now(), reason="by hand", moves=True),
            steps.pause,
        ]
        await admin.change_deployment(NAME, self.rng.choice(ends), actor="admin")

    async def _remove_version(self, admin: Catalog) -> None:
        unused = self.registry.newest.versions.keys() - {m.version for m in self._deployment.members}
        if unused:
            await admin.remove_version(self.rng.choice(sorted(unused)), actor="admin")

    async def _switch_alias(self, admin: Catalog) -> None:
        await admin.set_alias("best", NAME, actor="admin")

    # --- turns

    async def _ask(self, node: Node) -> None:
        """Turns at this gateway until the horizon, several at once."""
        while self.loop.monotonic() < HORIZON_S:
            await asyncio.sleep(self.rng.expovariate(1 / 1.2))
            node.process.spawn(self._turn(node))

    async def _turn(self, node: Node) -> None:
        try:
            await self._accepted(node)
        except AxonError:
            return  # refused; the client asks again when it likes

    async def _accepted(self, node: Node) -> None:
        view, own = node.parts["view"], node.parts["sessions"].pins
        self.num_turns += 1
        number, job_id = self.num_turns, f"resp_{self.num_turns}"
        short = f"s{int(self.loop.monotonic() // 10)}.{self.rng.randrange(3)}"
        name = self.rng.choice(["", "", short, f"n{number}"])
        key = pin_key(NAME, "", session_header=name) if name else ""
        deployment, chosen = self._seen(node, view), []

        def choose() -> str:
            now = self._seen(node, view)
            version = first_version(now, key or job_id, is_fresh=view.is_fresh)
            chosen.append((version, now.stable, self.loop.monotonic()))
            return version

        known = known_of(deployment, view.snapshot.versions, {}, is_fresh=view.is_fresh)
        resolved = await own.resolve(key, first=False, choose=choose, known=known)
        self._resolved_at[job_id] = self.loop.monotonic()
        version = resolved.pin.version
        if resolved.is_new and chosen and chosen[-1][0] == version:
            self._check_begun(chosen[-1])
        await asyncio.sleep(self.rng.choice([0.0, 0.01, 1.0, 9.0]))  # its prompt is rendered, its text loaded
        await node.process.gate()
        member = deployment.member(version)
        job = Job(
            id=job_id,
            tenant="client",
            deployment=NAME,
            version=version,
            lane=lane_of("client", NAME, NUM_LANES, letter=member.letter if member else ""),
            prompt_ids=(1, 2, 3),
            sampling=Sampling(max_tokens=4),
            seed=number,
            deadline=self.loop.now() + 60.0,
            created=self.loop.now(),
            pin=key,
            generation=resolved.pin.generation,
        )
        check_open(view.snapshot.deployments.get(NAME), version, is_awaited=view.is_awaited)
        await node.parts["dispatch"].accept(job)
        await own.confirm(key, Pin(resolved.pin.generation, version))

    def _seen(self, node: Node, view: RegistryFollower) -> Deployment:
        """The deployment as a gateway sees it. If the view says that it is fresh, it has missed nothing old."""
        if (deployment := view.snapshot.deployments.get(NAME)) is None:
            raise Unavailable
        now = self.loop.monotonic()
        oldest = self.registry.between(now - VIEW_S - _SLACK_S, now)[0].revision
        is_excused = self.registry.lagged_at >= now - VIEW_S
        if view.is_fresh and view.snapshot.revision < oldest and not is_excused:
            raise self.history.broken(f"{node.name} holds {view.snapshot.revision} as fresh, and {oldest} is old")
        return deployment

    # --- what is promised

    @property
    def _deployment(self) -> Deployment:
        return self.registry.newest.deployments[NAME]

    def _took(self, node: Node, seen: list[Snapshot], snapshot: Snapshot) -> None:
        if seen and snapshot.revision < seen[-1].revision:
            raise self.history.broken(f"{node.name} went back from {seen[-1].revision} to {snapshot.revision}")
        seen[:] = [snapshot]

    def _check_begun(self, chosen: tuple[str, str, float]) -> None:
        """A session begins on another version than the stable one only while a rollout gives it sessions."""
        version, stable, at = chosen
        lately = [each.deployments[NAME] for each in self.registry.between(at - VIEW_S - _SLACK_S, at)]
        is_excused = version == stable or self.registry.lagged_at >= at - VIEW_S
        if not is_excused and not any(_begins_on(each, version) for each in lately):
            raise self.history.broken(f"a session began on {version}, which has had no share for a while")

    def _opened(self, turn: Turn) -> None:
        version = turn.job.version
        if not turn.state.terminal and self._deployment.member(version) is None:
            raise self.history.broken(f"{turn.id} was accepted on {version}, which is removed")
        self._check_pin(turn)
        self.loop.call_later(self.rng.choice([0.1, 0.5, 1.0, 6.0]), self._end, turn)

    def _check_pin(self, turn: Turn) -> None:
        """The turns of one generation of a session are on one version, unless ``live`` has forgotten it lately or the
        turn was accepted so late that its pin had expired."""
        job, now = turn.job, self.loop.monotonic()
        first = self._pinned.setdefault((job.pin, job.generation), job.version) if job.pin else job.version
        is_forgotten = any(at > now - 2 * UNACCEPTED_S for at in self.history.flushes)
        is_late = now - self._resolved_at[turn.id] > UNACCEPTED_S
        if first != job.version and not is_forgotten and not is_late:
            raise self.history.broken(f"{turn.id} is on {job.version}, and its session on {first}")

    def _end(self, turn: Turn) -> None:
        over = replace(turn, state=TurnState.COMPLETED, ended_at=self.loop.now())
        self.loop.create_task(self.journal.append([over]))

    def _closed(self, deployment: Deployment, version: str) -> None:
        """No session was pinned to it, of all that control could know when it looked; unless it was old."""
        member, acting = deployment.member(version), self.history.acting
        node = next((node for node in self.nodes if node.process is acting), None)
        if member is None or node is None or "drains" not in node.parts:
            return
        began = node.parts["drains"].began
        known = [turn for turn in self.history.opened.values() if self.history.opened_at[turn.id][0] < began]
        since = self.loop.now() - PIN_S
        before = next(s.deployments[NAME] for s in reversed(self.registry.between(-1.0, 1e9)[:-1]))
        was = before.member(version)
        is_old = was is not None and self.loop.now() - was.since >= self.max_age_s
        if not is_old and (keys := list(pinned_keys(known, version, since=since))):
            raise self.history.broken(f"{version} was closed, and {len(keys)} sessions were on it")

    def _removed(self, deployment: Deployment, version: str) -> None:
        turns = self.history.opened.values()
        left = [each.id for each in turns if each.job.version == version and each.id not in self.history.ends]
        if left:
            raise self.history.broken(f"{version} was removed, and {left} have not ended")
        if keys := list(pinned_keys(turns, version, since=self.loop.now() - PIN_S)):
            raise self.history.broken(f"{version} was removed, and {len(keys)} sessions are on it")
        member = deployment.member(version)
        assert member is not None
        lanes = lane_names(NAME, NUM_LANES, letter=member.letter)
        if sum(map(self.broker.depth, lanes)):
            raise self.history.broken(f"{version} was removed, and jobs wait in its lanes")

    # --- workers

    async def work(self) -> None:
        """Every member has a worker that says so; jobs of turns that have ended leave their lanes, and so do those of
        turns that were never accepted."""
        while True:
            await asyncio.sleep(0.5)
            for member in self._deployment.members:
                await self.live.presences.put(self._presence(member.version), ttl_s=3.0)
            for lane in self.broker._lanes.values():
                for delivery in [each for each in lane if self._is_over(decode(Job, each.body))]:
                    lane.remove(delivery)

    def _is_over(self, job: Job) -> bool:
        was_refused = job.id not in self.history.opened_at and self.loop.now() - job.created > 3 * ACCEPT_S
        return was_refused or job.id in self.history.ends

    def _presence(self, version: str) -> Presence:
        served = ServedVersion(name=NAME, version=version, max_model_len=100, created=0.0)
        load = Load(slots=1, free_slots=1, num_tokens=0)
        return Presence(worker=version, incarnation=version, deployment=served, load=load, at=self.loop.now())

    # --- the nemesis

    async def torment(self) -> None:
        faults = [self._crash, self._pause, self._pause, self._flush, self._store_away, self._lag]
        faults += [self._cut, self._cut, self._stop_persisting]
        if self.rng.random() < 0.8:
            self.loop.call_later(self.rng.uniform(1.0, 8.0), self._cut, self.rng.uniform(60.0, 100.0))
        while self.loop.monotonic() < HORIZON_S:
            await asyncio.sleep(self.rng.expovariate(1 / 6.0))
            self.rng.choice(faults)()
            self.check()

    def check(self) -> None:
        if self.history.violation:
            raise Violation

    def heal(self) -> None:
        self.history.note("healed")
        self.rates.heal()
        self.store.away = self.registry.away = False
        self.registry.lag = 0
        for node in self.nodes:
            node.process.go_on()
            for way in node.ways.values():
                way.is_cut = False

    def _crash(self) -> None:
        if (process := self.rng.choice(self.nodes).process).alive:
            self.crashed(process)

    def _pause(self) -> None:
        self._stand_still(self.rng.choice(self.nodes).process, self.rng.choice([0.5, 3.0, 10.0]))

    def _stop_persisting(self) -> None:
        seconds = self.rng.uniform(2.0, 20.0)
        for node in self.nodes:
            if node.name.startswith("persister"):
                self._stand_still(node.process, seconds)

    def _stand_still(self, process: Process, seconds: float) -> None:
        if process.alive and not process.paused:
            self.history.note(f"{process.name} stands still for {seconds:.1f} s")
            process.pause()
            self.loop.call_later(seconds, process.go_on)

    def _flush(self) -> None:
        self.history.note("live forgets everything")
        self.live.lose_everything()

    def _store_away(self) -> None:
        self.history.note("the store goes away")
        self.store.away = self.registry.away = True
        self.loop.call_later(self.rng.uniform(0.5, 12.0), self._store_back)

    def _store_back(self) -> None:
        self.store.away = self.registry.away = False

    def _lag(self) -> None:
        self.history.note("the registry is read from a replica behind")
        self.registry.lag = self.rng.randint(1, 3)
        self.loop.call_later(self.rng.uniform(0.2, 3.0), setattr, self.registry, "lag", 0)

    def _cut(self, seconds: float = 0.0) -> None:
        """A gateway does not reach the store, at times for so long that a version can come and go."""
        way = self.rng.choice(self.nodes[:2]).ways.get("store")
        if way is not None and not way.is_cut:
            self.history.note(f"{way.process.name} is cut off from the store")
            way.is_cut = True
            seconds = seconds or self.rng.choice([4.0, 20.0, 60.0])
            self.loop.call_later(seconds, setattr, way, "is_cut", False)
            if self.rng.random() < 0.5:  # what it has accepted at the end is not in the store when it is back
                self.loop.call_later(seconds - 3.0, self._stop_persisting)

    # --- at the end

    def unrest(self) -> str:
        """What is left to happen, though nothing goes wrong any more."""
        deployment = self._deployment
        if left := [each.version for each in deployment.members if _is_leaving(deployment, each)]:
            return f"{left} are still there"
        views = [node.parts["view"].snapshot.revision for node in self.nodes if "view" in node.parts]
        if any(revision != self.registry.newest.revision for revision in views):
            return f"gateways hold {views}, and the registry is at {self.registry.newest.revision}"
        return ""


def run(seed: int) -> Outcome:
    """Runs one schedule; the same seed gives the same history."""
    loop = SimLoop()
    loop.set_exception_handler(lambda loop, context: None)
    worlds: list[RegistryWorld] = []
    problem = ""
    try:
        numbers = itertools.count(1)  # a rollout's id decides on its sessions, so it must not be drawn
        with (
            silence(),
            patch.object(pins, "UNACCEPTED_S", UNACCEPTED_S),
            patch.object(drains, "PIN_S", UNACCEPTED_S),
            patch.object(catalog, "new_id", lambda prefix, now: f"{prefix}{next(numbers)}"),
        ):
            loop.run(_live(seed, loop, worlds))
    except Stuck as error:
        problem = str(error)
    except Violation:
        pass
    history = worlds[0].history
    return Outcome(seed, history.violation or problem, history.events, worlds[0].num_turns)


async def _live(seed: int, loop: SimLoop, kept: list[RegistryWorld]) -> None:
    world = RegistryWorld(seed, loop)
    kept.append(world)
    await world.begin()
    working = loop.create_task(world.work())
    await world.torment()
    world.heal()
    deadline = loop.monotonic() + SETTLE_S
    while world.unrest():
        await asyncio.sleep(1.0)
        world.check()
        if loop.monotonic() > deadline:
            raise world.history.broken(f"not settled: {world.unrest()}")
    working.cancel()
    world.check()


def _begins_on(deployment: Deployment, version: str) -> bool:
    rollout = deployment.rollout
    is_rolled_out = rollout is not None and rollout.new == version and rollout.share > 0
    return deployment.stable == version or is_rolled_out


def _bumped(deployment: Deployment) -> Deployment:
    return replace(deployment, memory_bytes=deployment.memory_bytes + 1)


def _version(label: str) -> Version:
    return Version(model=NAME, label=label, source="/", digest=label, text="t", max_model_len=100, created=0.0)
