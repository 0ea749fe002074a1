"""A launcher in memory: replicas that run nothing, for tests and simulations. Keeps every rule of the port."""

from collections.abc import Sequence
from dataclasses import replace

from axon.domain.fleet.backoff import delay_s
from axon.domain.fleet.replica import Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.errors import StaleTerm
from axon.runtime.clock import Clock


class MemoryReplicas:
    """The machine: what was launched on it, and the highest term that it has seen. It outlives every launcher."""

    def __init__(self, clock: Clock, *, drains_at_once: bool = False) -> None:
        """``drains_at_once``: a stopped replica is gone by the next list, without ``finish``."""
        self.clock = clock
        self.term = 0
        self.launched: dict[ReplicaName, Launched] = {}
        self._due: dict[ReplicaName, float] = {}
        """When each replica that waits is started again."""
        self._drains_at_once = drains_at_once
        self._num_runs = 0

    def connect(self) -> "MemoryLauncher":
        """A launcher of this machine, as one more control has it."""
        return MemoryLauncher(self)

    def crash(self, name: ReplicaName, problem: str = "") -> None:
        """The replica ends by itself."""
        each = self.launched[name]
        self._due[name] = self.clock.now() + delay_s(each.restarts)
        self.launched[name] = replace(each, state=LaunchState.WAITING, since=self.clock.now(), problem=problem)

    def lose(self, name: ReplicaName) -> None:
        """The replica's machine does not answer any more."""
        self.launched[name] = replace(self.launched[name], state=LaunchState.LOST, since=self.clock.now())

    def finish(self, name: ReplicaName) -> None:
        """A replica that was told to stop has drained."""
        assert self.launched[name].state is LaunchState.STOPPING
        del self.launched[name]

    def take_term(self, term: int) -> None:
        """Raises ``StaleTerm`` for a term below the highest one seen."""
        if term < self.term:
            raise StaleTerm(f"Term {term} is over: an order of term {self.term} came before.")
        self.term = term

    def run(self, name: ReplicaName, spec: ReplicaSpec, *, restarts: int = 0) -> None:
        """Starts a run of the replica."""
        self._num_runs += 1
        self.launched[name] = Launched(
            name=name,
            incarnation=f"run-{self._num_runs}",
            spec=spec,
            state=LaunchState.RUNNING,
            since=self.clock.now(),
            restarts=restarts,
            problem=self.launched[name].problem if name in self.launched else "",
        )

    def tend(self) -> None:
        """Starts again what is due, and lets go what has drained."""
        for name, each in list(self.launched.items()):
            if each.state is LaunchState.STOPPING and self._drains_at_once:
                self.finish(name)
            elif each.state is LaunchState.WAITING and self.clock.now() >= self._due[name]:
                self.run(name, each.spec, restarts=each.restarts + 1)


class MemoryLauncher:
    """One control's hold on the machine."""

    def __init__(self, replicas: MemoryReplicas) -> None:
        self._replicas = replicas

    async def list(self) -> Sequence[Launched]:
        found = tuple(sorted(self._replicas.launched.values(), key=lambda each: each.name))
        self._replicas.tend()
        return found

    async def ensure(self, name: ReplicaName, spec: ReplicaSpec, *, term: int) -> None:
        self._replicas.take_term(term)
        if name not in self._replicas.launched:
            self._replicas.run(name, spec)

    async def stop(self, name: ReplicaName, incarnation: str, *, term: int) -> None:
        self._replicas.take_term(term)
        found = self._replicas.launched.get(name)
        if found is None or found.incarnation != incarnation or found.state is LaunchState.STOPPING:
            return
        if found.state is LaunchState.WAITING:
            del self._replicas.launched[name]
        else:
            now = self._replicas.clock.now()
            self._replicas.launched[name] = replace(found, state=LaunchState.STOPPING, since=now)
