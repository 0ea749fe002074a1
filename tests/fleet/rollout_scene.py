"""Conversations with a fleet whose versions are rolled out, back and out again; none of them may notice.

python -m tests.fleet.rollout_scene                 1,000 turns, and 1,000 more among faults; a table, one JSON line
python -m tests.fleet.rollout_scene --turns 200

Two deployments have two workers of each version. The first goes from v1 to v2; then, while workers are killed, Redis is
flushed and a gateway is restarted, from v2 to v3. Clients are OpenAI's own, with their own retries.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import comb
from pathlib import Path

import openai

from axon.domain.registry.rollout import WHOLE, bucket_of
from axon.domain.session.pin import pin_key
from tests.fleet.fleet import ECHO, Fleet, shared_place
from tests.fleet.member import Member
from tests.fleet.talks import Talk, Talks
from tests.fleet.versions import MODEL, OTHER, Registry
from tests.journeys.conftest import FEW_LANES, PATIENT
from tests.journeys.server import wait_until
from tests.services.redis import RedisServer

SHARES = (20, 60, 100)
SETTLED_S = 1.5
"""Seconds after a change from which on every gateway that is not cut off follows it."""
RETRIES = openai.DEFAULT_MAX_RETRIES
_UNLIKELY = 1e-4
_TENANT = "default"
_ENGINE = {"echo_step_s": "0.005"}
"""Answers take a third of a second, so that every fault finds some under way."""
_WIDTH, _LENGTH = 8, 4
_STAGE_S = 300.0
_PATIENT_COMPARISON = {"slower": 100.0}
"""A worker that was killed makes its version slower: that is not what is looked at here."""


@dataclass
class Stage:
    """A time in which the share of new sessions stood still."""

    name: str
    share: float
    """Of new sessions, 0 to 1."""
    began: float
    ended: float = 0.0
    found: Counter[str] = field(default_factory=Counter)
    """The versions on which its conversations began."""
    rollout: str = ""
    """Id of the rollout that runs in it; empty where none does."""
    dealt_otherwise: int = 0
    """Named sessions that did not begin where their bucket says: a gateway's view was stale, so it chose the stable."""

    def has(self, talk: Talk) -> bool:
        """Whether a conversation began in it, and not in its first moments."""
        return talk.model == MODEL and self.began + SETTLED_S <= talk.began and 0 < talk.heard <= self.ended

    def is_new(self, talk: Talk) -> bool:
        """Whether a session that has a name of its own is to begin on the new version."""
        key = pin_key(talk.model, _TENANT, session_header=talk.name)
        return bool(self.rollout) and bucket_of(self.rollout, key) < self.share * WHOLE

    def chance(self, new: str) -> float:
        """Probability of a number of new sessions that is at least as far off."""
        return chance_of(self.found[new], self.found.total(), self.share)


@dataclass
class Pass:
    """One way from a version to the next: out, back, out again."""

    old: str
    new: str
    stages: list[Stage] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    num_turns: int = 0
    num_talks: int = 0
    failures: list[str] = field(default_factory=list)
    strays: list[Talk] = field(default_factory=list)
    """Conversations that were answered by two versions, or moved."""
    asked_again: Counter[str] = field(default_factory=Counter)
    wall_s: float = 0.0

    @property
    def unlikely(self) -> list[Stage]:
        """Stages in which too few or too many sessions began on the new version."""
        return [stage for stage in self.stages if stage.chance(self.new) < _UNLIKELY]

    @property
    def ok(self) -> bool:
        return not (self.failures or self.strays or self.unlikely)


def chance_of(found: int, of: int, share: float) -> float:
    """Probability that a binomial number is at least as far from its mean as the one that was found."""
    off = abs(found - of * share)
    numbers = (number for number in range(of + 1) if abs(number - of * share) >= off - 1e-9)
    return min(1.0, sum(comb(of, each) * share**each * (1 - share) ** (of - each) for each in numbers))


class Scene:
    """A fleet with two registered deployments; ``run`` is one pass."""

    def __init__(self, fleet: Fleet, redis: RedisServer) -> None:
        self._fleet, self._redis = fleet, redis
        self.registry = Registry(fleet)
        self._workers: dict[str, list[Member]] = {}

    def open(self) -> "Scene":
        for model in (MODEL, OTHER):
            self.registry.add("v1", model, engine=_ENGINE, patience_s=60.0)
        for model in (MODEL, OTHER):
            self._start("v1", model)
        return self

    def run(self, old: str, new: str, num_turns: int, *, width: int = _WIDTH, with_faults: bool = False) -> Pass:
        """The rollout under conversations, so many at a time; each stage lasts for its part of the turns."""
        done = Pass(f"{MODEL}@{old}", f"{MODEL}@{new}")
        self.registry.add(new, engine=_ENGINE)
        faults = self._faults(old, new) if with_faults else {}
        began = time.monotonic()
        talks = Talks(
            [self._fleet.url],
            self._fleet.key,
            width=width,
            length=_LENGTH,
            retries=RETRIES,
            models=(MODEL, OTHER),
            name=f"to-{new}",
        )
        with talks:
            plan = self._plan(new)
            for name, share, act in plan:
                act()
                stage = Stage(name, share, time.monotonic())
                stage.rollout = self.registry.rollout()["id"] if share else ""
                done.stages.append(stage)
                threads = [threading.Thread(target=self._strike, args=(fault, done)) for fault in faults.get(name, ())]
                for thread in threads:
                    thread.start()
                _more(talks, num_turns / len(plan))
                for thread in threads:
                    thread.join()
                stage.ended = time.monotonic()
            self.registry.rollout("promote")
        done.wall_s = time.monotonic() - began
        self._count(done, talks)
        return done

    def _plan(self, new: str) -> Sequence[tuple[str, float, Callable[[], object]]]:
        """Each stage's name, its share of new sessions, and what begins it."""

        def start() -> None:
            self.registry.rollout(version=new, steps=SHARES, bake_s=0, tolerance=_PATIENT_COMPARISON)
            if new not in self._workers:
                self._start(new)
            wait_until(lambda: self.registry.rollout()["state"] == "running", "the new version is warm")

        step, back = partial(self.registry.rollout, "step"), partial(self.registry.rollout, "rollback")
        first, second, last = (share / 100 for share in SHARES)
        return (
            ("before", 0.0, lambda: None),
            ("out 20 %", first, start),
            ("out 60 %", second, step),
            ("back", 0.0, back),
            ("again 20 %", first, start),
            ("again 60 %", second, step),
            ("again 100 %", last, step),
        )

    def _faults(self, old: str, new: str) -> dict[str, Sequence[tuple[str, Callable[[], object]]]]:
        gateway = self._fleet.gateways[1]
        return {
            "out 60 %": [("a worker of the new version is killed", lambda: _killed(self._workers[new][0]))],
            "back": [("a worker of the old version is killed", lambda: _killed(self._workers[old][0]))],
            "again 20 %": [("Redis is flushed", self._redis.flush)],
            "again 60 %": [("a gateway is restarted", gateway.restart), ("Redis is flushed", self._redis.flush)],
        }

    def _strike(self, fault: tuple[str, Callable[[], object]], done: Pass) -> None:
        name, act = fault
        try:
            act()
            done.faults.append(name)
        except Exception as error:
            done.failures.append(f"{name}: {error!r}")

    def _start(self, label: str, model: str = MODEL) -> None:
        workers = [self.registry.worker(label, model) for _ in range(2)]
        if model == MODEL:
            self._workers[label] = workers

    @staticmethod
    def _count(done: Pass, talks: Talks) -> None:
        done.num_turns, done.num_talks = talks.num_turns, len(talks.talks)
        done.failures += talks.problems
        done.strays = [talk for talk in talks.talks if len(set(talk.said)) > 1 or talk.moves]
        done.asked_again = talks.asked_again
        for stage in done.stages:
            stage.found = talks.first_versions(where=stage.has)
            named = [talk for talk in talks.talks if stage.has(talk) and not talk.is_chain]
            stage.dealt_otherwise = sum(stage.is_new(talk) != (talk.said[0] == done.new) for talk in named)


def _more(talks: Talks, num_turns: float) -> None:
    """Returns after so many more turns, once the gateways follow what was changed last."""
    settled = time.monotonic() + SETTLED_S
    wait_until(lambda: time.monotonic() >= settled, "the change is known everywhere")
    target = talks.num_turns + num_turns
    wait_until(lambda: talks.num_turns >= target, f"{num_turns:.0f} more turns", _STAGE_S)


def _killed(worker: Member) -> None:
    worker.kill()
    worker.start()


@contextmanager
def scene(**settings: object) -> Iterator[Scene]:
    """A fleet of its own, with a Redis that may be flushed."""
    with tempfile.TemporaryDirectory(prefix="axon-rollout-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        redis = RedisServer(folder / "redis")
        stack.callback(redis.kill)
        redis.start()
        chosen = {**ECHO, "dispatch_num_lanes": FEW_LANES, **PATIENT, **settings}
        fleet = Fleet(folder, {**shared_place(), "live": redis.url}, **chosen)
        stack.callback(fleet.stop)
        opened = Scene(fleet.start(gateways=2, workers=1), redis)
        stack.enter_context(opened.registry)
        yield opened.open()


def show(passes: Sequence[Pass]) -> None:
    """A table for people, one line for machines."""
    print(f"{'rollout':<22} {'stage':<12} {'share':>6} {'sessions':>9} {'on the new':>11} {'chance':>8}")
    for each in passes:
        for stage in each.stages:
            print(
                f"{each.old + ' → ' + each.new[-2:]:<22} {stage.name:<12} {stage.share:>6.0%} "
                f"{stage.found.total():>9} {stage.found[each.new]:>11} {stage.chance(each.new):>8.2g}"
            )
        for failure in each.failures[:20]:
            print(f"failed: {failure}", file=sys.stderr)
        for talk in each.strays[:20]:
            print(f"strayed: {talk}", file=sys.stderr)
    print(json.dumps([_line(each) for each in passes]))


def _line(each: Pass) -> dict[str, object]:
    return {
        "old": each.old,
        "new": each.new,
        "turns": each.num_turns,
        "conversations": each.num_talks,
        "failed": len(each.failures),
        "strayed": len(each.strays),
        "unlikely": [stage.name for stage in each.unlikely],
        "dealt_otherwise": sum(stage.dealt_otherwise for stage in each.stages),
        "asked_again": dict(each.asked_again),
        "faults": each.faults,
        "wall_s": round(each.wall_s, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fleet.rollout_scene", description=__doc__)
    parser.add_argument("--turns", type=int, default=1000, help="of each pass [default: 1000]")
    options = parser.parse_args()
    with scene() as opened:
        passes = [opened.run("v1", "v2", options.turns)]
        passes.append(opened.run("v2", "v3", options.turns, with_faults=True))
    show(passes)
    return 0 if all(each.ok for each in passes) else 1


if __name__ == "__main__":
    sys.exit(main())
