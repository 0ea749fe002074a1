"""A random fault every half minute under steady load, for as long as it is told: nothing lost, and nobody grows.

python -m tests.faults.soak --minutes 30
"""

import argparse
import json
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import redis_faults, worker_faults
from tests.faults.fault import NotInjected, Scene
from tests.faults.fleet import rss_bytes
from tests.faults.run import checked
from tests.faults.stage import Stage
from tests.faults.workload import Workload
from tests.services.process import wait_for

_EVERY_S = 30.0
_FAULTS = [
    (redis_faults.restarted, 2),
    (redis_faults.flushed, 2),
    (worker_faults.engine_killed, 2),
    (worker_faults.killed_in_decode, 1),
    (worker_faults.paused, 1),
]
"""What may happen, and how often beside the others."""
_MOST_MB_PER_MINUTE = 0.5
_WARM = 1 / 3
"""The share of a life in which caches and pools fill; and of the soak that a life must have lasted to count."""
_HISTORY = Path(__file__).resolve().parents[2] / ".cache" / "faults" / "kept" / "soak.jsonl"


@dataclass(slots=True)
class Growth:
    """One process's memory over its life."""

    samples: list[tuple[float, int]] = field(default_factory=list)

    @property
    def minutes(self) -> float:
        return (self.samples[-1][0] - self.samples[0][0]) / 60 if self.samples else 0.0

    @property
    def mb_per_minute(self) -> float:
        """The slope of the line that fits best."""
        warm = self.samples[int(_WARM * len(self.samples)) :]
        times = [at / 60 for at, _ in warm]
        sizes = [size / 1e6 for _, size in warm]
        mean_time, mean_size = sum(times) / len(times), sum(sizes) / len(sizes)
        spread = sum((at - mean_time) ** 2 for at in times)
        return sum((at - mean_time) * (size - mean_size) for at, size in zip(times, sizes, strict=True)) / (spread or 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--clients", type=int, default=12)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server outlives this program
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    stage = Stage("plain", seed=seed).open()
    try:
        return _soak(stage, seed, 60 * options.minutes, options.clients)
    finally:
        stage.close()


def _soak(stage: Stage, seed: int, seconds: float, num_clients: int) -> int:
    rng = random.Random(f"soak/{seed}")
    work = Workload(
        lambda: stage.fleet.urls,
        stage.keys,
        stage.asks,
        name="soak",
        seed=seed,
        num_requests=0,
        num_clients=num_clients,
    )
    scene = Scene(stage=stage, work=work, rng=rng)
    growths: dict[str, Growth] = {}
    happened: list[str] = []
    with work:
        while work.now < seconds:
            _watch(stage, growths, work, until=min(seconds, work.now + _EVERY_S))
            [happen] = rng.choices([each for each, _ in _FAULTS], [weight for _, weight in _FAULTS])
            work.wait_for_running(num_clients // 2)
            try:
                happen(scene)
            except NotInjected as error:
                print(f"{work.now:6.0f} s  {happen.__name__} did not happen: {error}", flush=True)
                continue
            happened.append(happen.__name__)
            print(f"{work.now:6.0f} s  {happen.__name__}, {work.history.num_ended} turns ended", flush=True)
        work.finish()
    violations = checked(stage, scene, hangs=True)
    slopes = {name: growth.mb_per_minute for name, growth in growths.items() if growth.minutes >= _WARM * seconds / 60}
    for name, slope in slopes.items():
        print(f"{name:44} {slope:+.2f} MB/min over {growths[name].minutes:.1f} min")
    for violation in violations[:10]:
        print(f"! {violation.kind}: {violation.what}")
    grown = {name: slope for name, slope in slopes.items() if slope > _MOST_MB_PER_MINUTE}
    if violations:
        _HISTORY.parent.mkdir(parents=True, exist_ok=True)
        work.history.write(_HISTORY)
        print(f"seed {seed}, history: {_HISTORY}")
    facts = {
        "minutes": round(work.now / 60, 1),
        "faults": happened,
        "requests": len(work.history.turns),
        "violations": len(violations),
        "most_mb_per_minute": round(max(slopes.values(), default=0.0), 2),
        "seed": seed,
    }
    print(json.dumps(facts))
    return bool(violations or grown)


def _watch(stage: Stage, growths: dict[str, Growth], work: Workload, *, until: float) -> None:
    """Samples every process's memory until the time has come."""

    def sample() -> bool:
        for process in stage.fleet.processes:
            for part, pid in process.pids.items():
                key = f"{process.name} {part} {pid}"
                growths.setdefault(key, Growth()).samples.append((time.monotonic(), rss_bytes(pid)))
        return work.now >= until

    while not sample():
        pause_until = time.monotonic() + 1.0
        wait_for(lambda: time.monotonic() > pause_until, "a second has passed")  # noqa: B023


if __name__ == "__main__":
    sys.exit(main())
