"""What befalls the simulated fleet: crashes, pauses, lost memory, a store that is away. Knows no client, no promise."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

from axon.domain.wire import encode
from tests.sim.processes import Process

if TYPE_CHECKING:
    from tests.sim.world import Node, World


class Nemesis:
    """Chooses faults by the world's own chance, so that one seed is one history."""

    def __init__(self, world: "World") -> None:
        self._world = world

    async def torment(self, horizon_s: float) -> None:
        """Faults at random times until the horizon."""
        faults = [
            *(self._crash_somebody, self._crash_somebody, self._pause_somebody, self._pause_somebody),
            *(self._kill_engine, self._restart_broker, self._duplicate, self._lose_live, self._lose_tail),
            *(self._store_away, self._freeze_and_forget, self._lag_and_forget, self._drain_somebody),
        ]
        for time, change in self._world.plan.events() if self._world.plan else ():
            self._world.loop.call_later(time, change)
        while self._world.loop.monotonic() < horizon_s:
            await asyncio.sleep(self._world.rng.expovariate(1 / 0.6))
            self._world.rng.choice(faults)()

    def _crash_somebody(self) -> None:
        node = self._world.rng.choice(self._world.nodes)
        if node.process.alive:
            self._world.crashed(node.process)

    def _pause_somebody(self) -> None:
        process = self._world.rng.choice(self._world.nodes).process
        if process.alive and not process.paused:
            self._world.history.note(f"{process.name} stands still")
            process.pause()
            self._world.loop.call_later(self._world.rng.uniform(0.2, 5.0), process.go_on)

    def _freeze_and_forget(self) -> None:
        """A worker stands still in the middle of its work, and comes back into a world that has forgotten it."""
        busy = [node for node in self._world.nodes if "worker" in node.parts and node.parts["worker"].hands.running]
        if busy and not (process := self._world.rng.choice(busy).process).paused and process.alive:
            self._world.history.note(f"{process.name} stands still, and all is forgotten")
            process.pause()
            self._world.loop.call_later(self._world.rng.uniform(0.2, 3.0), process.go_on)
            self._world.loop.call_later(self._world.rng.uniform(0.05, 1.0), self._world.live.lose_everything)
            self._world.loop.call_later(self._world.rng.uniform(0.1, 1.5), self._duplicate)
            self._world.loop.call_later(self._world.rng.uniform(0.1, 1.5), self._duplicate)

    def _drain_somebody(self) -> None:
        """A worker is told to end, and is started again."""
        nodes = [node for node in self._world.nodes if "worker" in node.parts and node.process.alive]
        if nodes and not (node := self._world.rng.choice(nodes)).parts["worker"].hands.is_closed:
            self._world.history.note(f"{node.name} is told to end")
            node.process.spawn(self._leave(node, node.process))

    async def _leave(self, node: "Node", process: Process) -> None:
        worker = node.parts["worker"]
        await worker.drain(self._world.rng.uniform(0.2, 6.0))
        node.parts["working"].cancel()
        await asyncio.wait([node.parts["working"]])
        await worker.aclose()
        if process.alive:
            self._world.crashed(process)

    def _lag_and_forget(self) -> None:
        """The journal is not written for a while, and what is fast forgets everything meanwhile."""
        controls = [
            node.process for node in self._world.nodes if node.name.startswith("control") and node.process.alive
        ]
        for process in controls:
            self._world.history.note(f"{process.name} stands still")
            process.pause()
            self._world.loop.call_later(self._world.rng.uniform(1.0, 3.0), process.go_on)
        self._world.loop.call_later(self._world.rng.uniform(0.1, 0.8), self._world.live.lose_everything)

    def _kill_engine(self) -> None:
        if self._world.engines:
            engine = self._world.rng.choice(list(self._world.engines))
            self._world.history.note(f"the engine of {engine._process.name} dies")
            self._world.struck |= engine.seeds
            engine.die()

    def _restart_broker(self) -> None:
        self._world.history.note("the broker restarts: every unacked delivery returns")
        for queue in self._world.queues:
            queue.reconnect()

    def _duplicate(self) -> None:
        if self._world.history.opened:
            turn = self._world.rng.choice(list(self._world.history.opened.values()))
            self._world.history.note(f"{turn.id} is delivered once more")
            self._world.broker.declare([turn.job.lane])
            self._world.broker.publish(turn.job.lane, encode(turn.job))

    def _lose_live(self) -> None:
        if self._world.rng.random() < 0.5:
            self._world.live.lose_everything()

    def _lose_tail(self) -> None:
        cast("Any", self._world.live.log).lose_some_tail()

    def _store_away(self) -> None:
        self._world.history.note("the store goes away")
        self._world.store.away = True
        self._world.loop.call_later(self._world.rng.uniform(0.5, 4.0), self._store_back)

    def _store_back(self) -> None:
        self._world.store.away = False
