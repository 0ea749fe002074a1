"""A registry in virtual time: admins edit it, controls lead rollouts and drains, gateways begin turns by their views.

Catalog, writer, followers, holders, rollouts, drains, pins and dispatch are production code. Each change of the
registry and each accepted turn is checked when it is made, whoever made it.
"""

import asyncio
import itertools
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from axon.adapters.queue.memory import MemoryBroker, MemoryQueue
from axon.control import drains
from axon.control.drains import _is_leaving
from axon.control.persister import Persister
from axon.control.rollouts import Rollouts
from axon.control.version_uses import VersionUses
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch
from axon.domain.fairness.lane import lane_of
from axon.domain.job import Job
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Load, Presence
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.model import Model
from axon.domain.registry.snapshot import Snapshot, check_open, first_version
from axon.domain.sampling import Sampling
from axon.domain.session.pin import Pin, known_of, pin_key
from axon.domain.turn import Turn, TurnState
from axon.domain.wire import decode
from axon.errors import AxonError
from axon.ports.live import Live
from axon.registry import catalog
from axon.registry.catalog import Catalog
from axon.registry.follower import RegistryFollower
from axon.registry.holders import Holders
from axon.registry.observations import Observations
from axon.registry.revisions import Revisions
from axon.registry.writer import RegistryWriter
from axon.sessions import pins
from axon.sessions.config import SessionsConfig
from axon.sessions.sessions import make_sessions
from tests.sim.faults import Rates, Through
from tests.sim.history import Violation
from tests.sim.loop import SimLoop, Stuck
from tests.sim.processes import Process
from tests.sim.registry_admins import Admins
from tests.sim.registry_nemesis import Nemesis
from tests.sim.registry_nodes import (
    ACCEPT_S,
    HORIZON_S,
    NAME,
    NUM_LANES,
    NUM_SLOTS,
    PIN_S,
    SETTLE_S,
    UNACCEPTED_S,
    CutWay,
    Node,
    PinStore,
    RegistryHistory,
    WatchedDrains,
    make_version,
)
from tests.sim.registry_promises import Promises
from tests.sim.registry_store import SimRegistry
from tests.sim.schedule import Outcome, silence
from tests.sim.services import SimConversations, SimJournal, SimMarkers, SimReader, make_live


class RegistryWorld:
    """Services, processes and a nemesis, all driven by one seed."""

    def __init__(self, seed: int, loop: SimLoop) -> None:
        self.rng, self.loop = random.Random(f"registry {seed}"), loop
        rng = self.rng
        self.history = RegistryHistory(loop.monotonic)
        self.history.on_opened = self._opened
        self.live = make_live(loop, self.history, rng)
        self.registry = SimRegistry(
            self.history,
            loop.monotonic,
            lambda *found: self.promises.closed(*found),
            lambda *found: self.promises.removed(*found),
        )
        self.markers, self.broker = SimMarkers(), MemoryBroker(clock=loop)
        self.journal, self.store = SimJournal(self.history, self.markers, rng), PinStore(self.history)
        self.rates = Rates(
            lost_call=rng.choice([0, 0.005, 0.03]),
            lost_answer=rng.choice([0, 0.005, 0.03]),
            crash=rng.choice([0, 0.0005, 0.003]),
        )
        self.max_age_s = rng.choice([3600.0, 3600.0, 30.0])
        self.num_turns = self._num_restarts = 0
        self.nodes = [
            *[Node(f"gateway{i}", self._make_gateway) for i in range(2)],
            *[Node(f"control{i}", self._make_control) for i in range(2)],
            *[Node(f"admin{i}", self._make_admin) for i in range(2)],
            *[Node(f"persister{i}", self._make_persister) for i in range(2)],
        ]
        self.admins = Admins(self.registry, self.history, rng, loop)
        self.promises = Promises(
            self.registry, self.history, loop, nodes=self.nodes, broker=self.broker, max_age_s=self.max_age_s
        )
        self.nemesis = Nemesis(
            self.nodes,
            self.history,
            rng,
            loop,
            live=self.live,
            store=self.store,
            registry=self.registry,
            rates=self.rates,
            crash=self.crashed,
        )

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
        made = Model(name=NAME, created=0.0), make_version("v0"), first
        await self.registry.write_all([(None, each) for each in made], actor="sim", at=0.0)
        del self.registry.states[0]  # nobody has seen it empty
        for node in self.nodes:
            self.start(node)

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
                changed=lambda snapshot: self.promises.took(node, seen, snapshot),
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

    def _make_admin(self, node: Node) -> None:
        live, registry = self._live(node), self._through(node, "store", self.registry)
        writer = RegistryWriter(registry, self.loop, Revisions(live.cache, live.wakeups))
        pinned = self._sessions(node, live).pins.count
        node.parts = {"catalog": Catalog(registry, writer, self.loop, pinned=pinned, letter_rest_s=5.0)}
        node.process.spawn(self.admins.run(node.parts["catalog"]))

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
        deployment, chosen = self.promises.seen(node, view), []

        def choose() -> str:
            now = self.promises.seen(node, view)
            version = first_version(now, key or job_id, is_fresh=view.is_fresh)
            chosen.append((version, now.stable, self.loop.monotonic()))
            return version

        known = known_of(deployment, view.snapshot.versions, {}, is_fresh=view.is_fresh)
        resolved = await own.resolve(key, first=False, choose=choose, known=known)
        self.promises.resolved_at[job_id] = self.loop.monotonic()
        version = resolved.pin.version
        if resolved.is_new and chosen and chosen[-1][0] == version:
            self.promises.check_begun(chosen[-1])
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

    def _opened(self, turn: Turn) -> None:
        self.promises.opened(turn)
        self.loop.call_later(self.rng.choice([0.1, 0.5, 1.0, 6.0]), self._end, turn)

    def _end(self, turn: Turn) -> None:
        over = replace(turn, state=TurnState.COMPLETED, ended_at=self.loop.now())
        self.loop.create_task(self.journal.append([over]))

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

    def unrest(self) -> str:
        """What is left to happen, though nothing goes wrong any more."""
        deployment = self._deployment
        if left := [each.version for each in deployment.members if _is_leaving(deployment, each)]:
            return f"{left} are still there"
        views = [node.parts["view"].snapshot.revision for node in self.nodes if "view" in node.parts]
        if any(revision != self.registry.newest.revision for revision in views):
            return f"gateways hold {views}, and the registry is at {self.registry.newest.revision}"
        return ""

    @property
    def _deployment(self) -> Deployment:
        return self.registry.newest.deployments[NAME]


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
    await world.nemesis.torment()
    world.nemesis.heal()
    deadline = loop.monotonic() + SETTLE_S
    while world.unrest():
        await asyncio.sleep(1.0)
        world.nemesis.check()
        if loop.monotonic() > deadline:
            raise world.history.broken(f"not settled: {world.unrest()}")
    working.cancel()
    world.nemesis.check()
