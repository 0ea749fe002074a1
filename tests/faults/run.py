"""One fault under load, from the first request to the last check. Prints nothing."""

import random
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.faults.asking import Patience
from tests.faults.checkers import (
    Violation,
    brief,
    check_foreign,
    check_nothing_left,
    check_pieces,
    check_stored,
    check_told,
    read_store,
)
from tests.faults.fault import Fault, NotInjected, Scene
from tests.faults.history import History
from tests.faults.stage import Stage
from tests.faults.workload import Workload

_LEAVES_S = 2.0
"""How soon clients leave a process that stands still."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of one fault."""

    fault: Fault
    seed: int
    history: History
    proofs: list[str] = field(default_factory=list)
    stalls_s: list[float] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    error: str = ""
    """Why the fault proves nothing."""
    waiting: list[str] = field(default_factory=list)
    """Who was still waiting then."""
    took_s: float = 0.0

    @property
    def requests(self) -> int:
        return len(self.history.turns)

    def count(self, *kinds: str) -> int:
        return sum(each.kind in kinds for each in self.violations)

    @property
    def verdict(self) -> str:
        """``held``; ``held, slow`` past the stall's goal; ``broken``; ``error`` when the fault did not happen."""
        if self.error:
            return "error"
        if self.violations:
            return "broken"
        slow = self.fault.goal_s is not None and self.stall_s(0.99) > self.fault.goal_s
        return "held, slow" if slow else "held"

    def stall_s(self, share: float) -> float:
        """The stall that so large a share of the hit streams stays within."""
        if not self.stalls_s:
            return 0.0
        ordered = sorted(self.stalls_s)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run_fault(stage: Stage, fault: Fault, *, num_requests: int, rounds: int | None = None) -> Outcome:
    """Stage 1: the fault happens, at moments that follow from the seed. Stage 2: everything is checked."""
    rng = random.Random(f"{fault.name}/{stage.seed}")
    patience = Patience(stall_s=_LEAVES_S, answer_s=2 * _LEAVES_S) if fault.hangs else Patience()
    num_clients = min(fault.num_clients, num_requests)
    rounds = min(rounds or fault.rounds, fault.rounds)
    work = Workload(
        lambda: stage.fleet.urls,
        stage.keys,
        stage.asks_of(fault.load),
        name=fault.name,
        seed=stage.seed,
        num_requests=num_requests,
        num_clients=num_clients,
        patience=patience,
    )
    work.history.asks |= stage.known_asks
    stored = sum(turn.usage.output_tokens for turn in stage.place.turns())
    scene = Scene(
        stage=stage,
        work=work,
        rng=rng,
        billed_before=stage.fleet.num_billed,
        stored_before=stored,
        tickets_before=stage.place.tickets(),
    )
    outcome = Outcome(fault=fault, seed=stage.seed, history=work.history, proofs=scene.proofs)
    try:
        with work:
            for moment in sorted(rng.uniform(0.05, 0.8) for _ in range(rounds)):
                work.wait_for_ended(int(moment * num_requests))
                work.wait_for_running(num_clients // 2)
                fault.happen(scene)
            work.wait_for_ended(num_clients // 2, asked_after=work.now)
            work.finish()
        if not scene.proofs:
            raise NotInjected("nothing proves that it happened")
    except (NotInjected, TimeoutError, AssertionError, httpx.TransportError) as error:
        outcome.error = f"{type(error).__name__}: {error}"
        outcome.waiting = [brief(told) for told in work.history.turns if told.ended_at is None]
    outcome.took_s = work.now
    outcome.stalls_s = _stalls_s(scene)
    if not outcome.error:
        outcome.violations = checked(stage, scene, hangs=fault.hangs, forgets=fault.forgets)
    return outcome


def checked(stage: Stage, scene: Scene, *, hangs: bool, forgets: bool = False) -> list[Violation]:
    """Everything that no fault may change."""
    history = scene.work.history
    found = check_told(history, hangs=hangs)
    turns, missing = read_store(stage, history)
    found += missing + check_stored(history, turns, stage.condemned)
    found += check_pieces(history, turns)
    for check in scene.checks:
        found += check(turns)
    found += check_foreign(stage, history)
    return found + check_nothing_left(stage, forgets=forgets, but=scene.tickets_before)


def _stalls_s(scene: Scene) -> list[float]:
    stalls = [
        told.stall_s(struck_at)
        for struck_at, stream_ids in scene.hits
        for told in scene.work.history.turns
        if told.stream_id in stream_ids
    ]
    return [stall for stall in stalls if stall is not None]


def keep(outcome: Outcome, stage: Stage, folder: Path) -> Path:
    """The history and what the processes wrote, in a folder of the fault's own."""
    name = re.sub(r"[^a-z0-9]+", "-", outcome.fault.name.lower())
    place = folder / f"{name}-{outcome.seed}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    outcome.history.write(place / "history.jsonl")
    for log in stage.place.folder.glob("*.log"):
        shutil.copy(log, place)
    return place
