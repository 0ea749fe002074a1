"""One fault: what it needs, and a function that injects it, proves that it happened, and heals it again."""

import random
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

from axon.domain.turn import Turn
from tests.faults.checkers import Violation
from tests.faults.fleet import Fleet, Process
from tests.faults.place import Place
from tests.faults.stage import Kind, Load, Stage
from tests.faults.workload import Workload
from tests.services.process import wait_for
from tests.vllm_environment import patience


class NotInjected(Exception):
    """The fault did not happen: whatever held after it proves nothing."""


@dataclass(slots=True, kw_only=True)
class Scene:
    """What a fault has in its hands: the stage, the clients at work, and a source of seeded choices."""

    stage: Stage
    work: Workload
    rng: random.Random
    billed_before: float = 0.0
    """Tokens that the workers had counted before the first request, and those in the store."""
    stored_before: int = 0
    tickets_before: Set[str] = frozenset()
    proofs: list[str] = field(default_factory=list)
    hits: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    """When the fault struck, and which streams."""
    checks: list[Callable[[Sequence[Turn]], Iterable[Violation]]] = field(default_factory=list)
    """What else must hold of the store at the end."""

    @property
    def place(self) -> Place:
        return self.stage.place

    @property
    def fleet(self) -> Fleet:
        return self.stage.fleet

    def prove(self, true: object, what: str) -> None:
        """The fault, or a part of it, has happened."""
        if not true:
            raise NotInjected(what)
        self.proofs.append(what)

    def wait(self, true: Callable[[], object], what: str, timeout_s: float = 30.0) -> None:
        """Comes to be true, as a proof."""
        try:
            wait_for(true, what, timeout_s * patience())
        except TimeoutError as error:
            raise NotInjected(what) from error
        self.proofs.append(what)

    def strike(self, stream_ids: Iterable[str] | None = None) -> None:
        """Now: the stalls of these streams count from here, or those of all that run."""
        running = [told.stream_id for told in self.work.history.running]
        self.hits.append((self.work.now, frozenset(running if stream_ids is None else stream_ids)))

    def caught(self, fits: Callable[[int], bool], what: str) -> tuple[Process, list[str]]:
        """A worker whose engine was stopped at a moment when the last seq of some of its jobs fits; and those jobs."""
        found: list[tuple[Process, list[str]]] = []

        def look() -> bool:
            for worker in self.rng.sample(self.fleet.workers, len(self.fleet.workers)):
                worker.pause_engine()
                jobs = [job for job, last in self.place.jobs(worker.incarnation).items() if fits(last)]
                if jobs:
                    found.append((worker, jobs))
                    return True
                worker.resume()
            return False

        self.wait(look, what, 60.0)
        return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A value; ``happen`` does all of it in order: inject, prove, heal."""

    name: str
    happen: Callable[[Scene], None]
    stage: Kind = "plain"
    load: Load = "plain"
    """What clients ask for meanwhile."""
    rounds: int = 1
    """How often it happens in a whole run."""
    num_clients: int = 24
    hangs: bool = False
    """Clients of a process that stands still wait until they leave it."""
    forgets: bool = False
    """The live service loses its last words, and with them that tickets were given back."""
    goal_s: float | None = None
    """What the stall is to stay below, at the 99th percentile."""
    root: bool = False
    """Needs a disk of its own."""
    tested: Literal["never", "one of ten", "always"] = "never"
    """Whether ``make test`` runs it too; of those that are one of ten, it runs a tenth."""

    @property
    def says(self) -> str:
        return (self.happen.__doc__ or "").strip().splitlines()[0]
