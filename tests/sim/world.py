"""A small fleet in virtual time: gateways, workers and controls over services that fail. One seed, one history.

Everything but the services is production code: what survives here is what runs there.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from axon.adapters.queue.memory import MemoryBroker
from axon.admission.admission import Admission
from axon.admission.config import AdmissionConfig
from axon.control.config import ControlConfig
from axon.control.gone import GoneVersions
from axon.control.persister import Persister
from axon.control.sweeper import Sweeper
from axon.dispatch.affinity import Affinity, Residences
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import Idempotency
from axon.domain.fairness.lane import lane_names
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Presence
from axon.domain.tenants.tenant import Terms
from axon.errors import AxonError
from axon.gateway.turn.follow import Follower
from axon.gateway.turn.opening import Opening
from axon.ownership.ending import Ending, refused_in
from axon.ownership.liveness import Liveness
from axon.ports.live import Live
from axon.sessions.config import SessionsConfig
from axon.sessions.sessions import make_sessions
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import ByteTokenizer
from axon.worker.config import WorkerConfig
from axon.worker.peers.presence import Announcer
from axon.worker.worker import Worker
from tests.sim.engine import SimEngine
from tests.sim.faults import Rates, Through, Way
from tests.sim.history import History
from tests.sim.loop import SimLoop
from tests.sim.nemesis import Nemesis
from tests.sim.processes import Process
from tests.sim.rollout import COLD, LETTERS, V1, V2, V3, Plan
from tests.sim.services import SimConversations, SimJournal, SimMarkers, SimQueue, SimReader, SimStore, make_live

DEPLOYMENT = "sim"
NUM_LANES = 2
GRACE_S = 3.0
TERMS = Terms(tokens_per_minute=1_000_000.0, concurrent=50, queued=40, tokens_per_day=10**9)
"""Large enough for nobody to be refused, so that what is counted can be compared with what was used."""
TICKET_S = 8.0
"""A ticket that nobody renews for so long is void."""
DRY = replace(TERMS, tokens_per_minute=60.0)
"""A long answer comes at the rate of the refill."""
_METRICS = Metrics()


def plan_of(seed: int, now: Callable[[], float]) -> Plan | None:
    """Half of the worlds have several versions, by the seed, so that nothing else of a schedule depends on it."""
    return Plan(seed, now) if seed % 2 else None


@dataclass(slots=True)
class Node:
    """A process and what it is made of; ``make`` builds its next incarnation."""

    name: str
    make: Callable[["Node"], None]
    version: str = ""
    """The version that a worker runs; empty for every one."""
    process: Process = field(init=False)
    parts: dict[str, Any] = field(default_factory=dict)


class World:
    """Services, nodes and a nemesis, all driven by one seed."""

    def __init__(self, seed: int, loop: SimLoop) -> None:
        self.rng = rng = random.Random(seed)
        self.loop = loop
        self.history = History(loop.monotonic)
        self.deterministic = rng.random() < 0.6
        self.live = make_live(loop, self.history, rng)
        self.broker = MemoryBroker(clock=loop)
        self.plan = plan_of(seed, loop.monotonic)
        if self.plan is None:
            self.broker.declare(lane_names(DEPLOYMENT, NUM_LANES))
        self.markers = SimMarkers()
        self.journal = SimJournal(self.history, self.markers, rng)
        self.store = SimStore(self.history)
        self.engines: dict[SimEngine, None] = {}
        self.queues: list[SimQueue] = []
        self.rates = Rates(
            lost_call=rng.choice([0, 0, 0.01, 0.05]),
            lost_answer=rng.choice([0, 0, 0.01, 0.05]),
            crash=rng.choice([0, 0, 0.002, 0.01]),
        )
        self.healed = False
        self.terms = rng.choice([TERMS, TERMS, DRY])
        self.is_poisoned = seed % 6 == 2
        """Whether a client sends a job that crashes every engine."""
        self.num_poisoned = 0
        """Engines that have died of it."""
        self.gather_s = (0.03, 0.1, 0.35)[seed % 3]
        """The shortest is one step of the engine, so that nothing gathers; the others are some."""
        self.struck: set[int] = set()
        """Seeds of jobs whose engine was killed by the nemesis: to them that looks like a poison's doing."""
        self.is_cold = self.plan is not None and self.plan.is_cold
        """Whether turns may wait for a version without a worker."""
        self.terms = TERMS if self.is_cold else self.terms
        self.nodes = [
            *[Node(f"gateway{i}", self._make_gateway) for i in range(2)],
            *[Node(f"worker{i}", self._make_worker, version) for i, version in enumerate(self._versions())],
            *[Node(f"control{i}", self._make_control) for i in range(2)],
        ]
        for node in self.nodes:
            self.start(node)

    def _versions(self) -> tuple[str, ...]:
        return ("", "") if self.plan is None else (V1, V1, V2, V3)

    # --- nodes

    def start(self, node: Node) -> None:
        node.process = Process(node.name, self.failed)
        self.history.note(f"{node.name} starts")
        node.make(node)

    def failed(self, process: Process, error: BaseException) -> None:
        """Production code let an error through: a defect, whatever the invariants say."""
        if process.alive:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self.history.broken(f"{process.name} failed: {error!r}")

    def crashed(self, process: Process) -> None:
        """The process dies now and is started again after a while."""
        self.history.note(f"{process.name} crashes")
        node = next(node for node in self.nodes if node.process is process)
        process.crash()
        if (queue := node.parts.pop("queue", None)) is not None:
            self._drop_connection(queue)
        if (worker := node.parts.get("worker")) is not None:
            self.history.held_since.pop(worker.identity.incarnation, None)
        for engine in [engine for engine in self.engines if engine._process is process]:
            engine.die()
            del self.engines[engine]
        self.loop.call_later(self.rng.uniform(0.1, 3.0), self.start, node)

    def _drop_connection(self, queue: SimQueue) -> None:
        self.queues.remove(queue)
        queue.drop()

    def _reach(self, node: Node) -> tuple[Way, Live]:
        way = Way(node.process, self.rates, self.rng, self.crashed, self.history)
        live = {name: Through(getattr(self.live, name), way) for name in Live.__dataclass_fields__}
        return way, Live(**cast("dict[str, Any]", live))

    def _connect(self, node: Node, way: Way) -> Any:
        queue = SimQueue(self.broker, self.history, self.queues)
        queue.connect_now()
        self.queues.append(queue)
        node.parts["queue"] = queue
        return Through(queue, way, on_lost=queue.reconnect)  # an answer lost is a connection lost, for a broker

    def _services(self, node: Node) -> tuple[Live, Any, Any, Any, Ending, Admission]:
        way, live = self._reach(node)
        queue = self._connect(node, way)
        journal, store = Through(self.journal, way), Through(self.store, way)
        admission = Admission(live.accounts, AdmissionConfig(ticket_s=TICKET_S), self.loop, spending=store.spent)
        ending = Ending(cast("Any", journal), admission.settle, self.loop, is_refused=refused_in(live.log))
        return live, queue, journal, store, ending, admission

    def _dispatch(self, live: Live, journal: Any, queue: Any) -> Dispatch:
        return Dispatch(
            log=live.log,
            journal=journal,
            queue=queue,
            wakeups=live.wakeups,
            config=DispatchConfig(num_lanes=NUM_LANES),
            reader_grace_s=GRACE_S,
            is_ours=lambda deployment: self.plan is not None and deployment == DEPLOYMENT,
            affinity=Affinity(
                residences=Residences(live.cache, ttl_s=60.0),
                presences=live.presences,
                own_lanes=queue,
                config=DispatchConfig(num_lanes=NUM_LANES),
                clock=self.loop,
            ),
        )

    def _make_gateway(self, node: Node) -> None:
        live, queue, journal, store, _, admission = self._services(node)
        dispatch = self._dispatch(live, journal, queue)
        node.parts["opening"] = Opening(admission, dispatch, Idempotency(live.log, store), self.loop)
        node.parts["live"] = live
        conversations = Through(SimConversations(self.store), self._reach(node)[0])
        kept = SimpleNamespace(turns=store, conversations=conversations, tombstones=None, pinned=store)
        sessions = make_sessions(live, cast("Any", kept), journal, self.loop, SessionsConfig())
        node.parts["histories"], node.parts["lookup"] = sessions.histories, sessions.lookup
        node.parts["pins"], node.parts["name"] = sessions.pins, node.name
        follower = Follower(live, store, sessions.lookup, self.loop, reader_grace_s=GRACE_S, silence_s=15)
        node.parts["follower"] = follower

    def _make_worker(self, node: Node) -> None:
        live, queue, journal, store, ending, admission = self._services(node)
        process, version = node.process, node.version
        worker = Worker(
            deployment=DEPLOYMENT,
            num_lanes=NUM_LANES,
            queue=queue,
            live=live,
            turns=store,
            ending=ending,
            journal=journal,
            tokenizer=ByteTokenizer(),
            make_engine=lambda: SimEngine(self, process, version),
            config=WorkerConfig(linger_s=0.5, checkpoint_s=0.5, gather_s=self.gather_s),
            reader_grace_s=GRACE_S,
            clock=self.loop,
            metrics=_METRICS,
            name=node.name,
            residences=Residences(live.cache, ttl_s=60.0),
            tickets=admission,
            letter=LETTERS.get(version, ""),
            letters=LETTERS.get,
        )
        node.parts["worker"] = worker
        self.history.owners[worker.identity.incarnation] = process
        node.parts["working"] = process.spawn(self._work(worker, version))
        announcer = Announcer(live.presences, lambda: self._presence(node, worker), every_s=1.0, clock=self.loop)
        process.spawn(announcer.run())

    def _presence(self, node: Node, worker: Worker) -> Presence:
        deployment = ServedVersion(name=DEPLOYMENT, version=node.version or "v1", max_model_len=100, created=0.0)
        return Presence(
            worker=node.name,
            incarnation=worker.identity.incarnation,
            deployment=deployment,
            load=worker.load,
            draining=worker.hands.is_closed,
            at=self.loop.now(),
        )

    async def _work(self, worker: Worker, version: str) -> None:
        worker.identity.version = version
        while True:
            try:
                await worker.open()
                break
            except AxonError:
                await asyncio.sleep(0.2)
        await worker.run()

    def _make_control(self, node: Node) -> None:
        live, queue, journal, store, ending, admission = self._services(node)
        sweeper = Sweeper(
            turns=store,
            live=live,
            queue=queue,
            dispatch=self._dispatch(live, journal, queue),
            ending=ending,
            liveness=Liveness(live.leases, self.loop, lease_s=1.5, wakeups=live.wakeups),
            readmit=admission.readmit,
            renew=admission.renew,
            renew_s=TICKET_S / 4,
            config=ControlConfig(orphan_s=4.0),
            retention_s=3600,
            clock=self.loop,
            gone=GoneVersions(live.presences, self.loop, is_removed=lambda version: False if self.plan else None),
            page=2,
        )
        node.process.spawn(sweeper.run())
        way, _ = self._reach(node)
        persister = Persister(
            cast("Any", Through(SimReader(self.journal), way)),
            store,
            cast("Any", Through(self.markers, way)),
            clock=self.loop,
        )
        node.process.spawn(persister.run())

    # --- the nemesis

    async def torment(self, horizon_s: float) -> None:
        """Faults at random times until the horizon."""
        await Nemesis(self).torment(horizon_s)

    def start_cold(self) -> None:
        """The version that nobody ran gets its first worker."""
        self.history.note("the cold version starts")
        self.is_cold = False
        self.nodes.append(Node(f"worker{len(self.nodes)}", self._make_worker, COLD))
        self.start(self.nodes[-1])

    def heal(self) -> None:
        self.history.note("healed")
        self.healed = True
        self.rates.heal()
        self.store.away = False
        for node in self.nodes:
            node.process.go_on()
