"""Breaks the services and the processes under load, one fault after the other, and checks that nothing was lost.

python -m tests.faults                         every fault, 300 requests each: half an hour
python -m tests.faults --list                  what there is
python -m tests.faults --only redis            those with the word in their name, or several: redis,worker killed
python -m tests.faults --only flushed --seed 7 one run again
python -m tests.faults --shelf                 with copies of KV blocks in a folder, and few blocks beside
python -m tests.faults --head                  with a model whose draft head drafts for every stream
python -m tests.faults --save                  also into the table of docs/reliability.md
"""

import argparse
import random
import shlex
import signal
import sys
import time
from pathlib import Path

from tests.faults.every import FAULTS, named
from tests.faults.report import machine_line, row, save, table
from tests.faults.run import Outcome, keep, run_fault
from tests.faults.stage import Stage, Stages
from tests.services.disk import can_mount

_KEPT = Path(__file__).resolve().parents[2] / ".cache" / "faults" / "kept"
_SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="words in the names of faults")
    parser.add_argument("--requests", type=int, default=300, help="of each fault (300)")
    parser.add_argument("--rounds", type=int, help="how often each happens, at most")
    parser.add_argument("--seed", type=int, help="of the requests and the moments")
    parser.add_argument("--save", action="store_true", help="write the table into docs/reliability.md")
    parser.add_argument("--shelf", action="store_true", help="have engines keep copies of KV blocks in a folder")
    parser.add_argument("--head", action="store_true", help="have a draft head draft for every stream")
    parser.add_argument("--list", action="store_true", help="name the faults and end")
    options = parser.parse_args()
    chosen = named(options.only) if options.only else FAULTS
    if options.list:
        for fault in chosen:
            print(f"{fault.name:36} {fault.says}")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server outlives this program
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    outcomes: list[Outcome] = []
    stages = Stages(seed=seed, has_shelf=options.shelf, has_head=options.head)
    try:
        for number, fault in enumerate(chosen, start=1):
            if fault.root and not can_mount():
                print(f"[{number}/{len(chosen)}] {fault.name}: needs root, left out", flush=True)
                continue
            print(f"[{number}/{len(chosen)}] {fault.name} …", flush=True)
            began = time.monotonic()
            stage = stages.get(fault.stage)
            outcome = run_fault(stage, fault, num_requests=options.requests, rounds=options.rounds)
            outcomes.append(outcome)
            _tell(outcome, stage, time.monotonic() - began)
            if options.save:
                save([outcome], shlex.join(["python", "-m", "tests.faults", *sys.argv[1:]]))
            if outcome.verdict in ("error", "broken"):
                stages.close()
    finally:
        stages.close()
    print("\n" + table([row(outcome) for outcome in outcomes]))
    print(machine_line(outcomes))
    return any(outcome.verdict in ("error", "broken") for outcome in outcomes)


def _tell(outcome: Outcome, stage: Stage, seconds: float) -> None:
    print(
        f"    {outcome.verdict}: {outcome.requests} requests, {len(outcome.stalls_s)} streams hit, stall p50 "
        f"{outcome.stall_s(0.5):.2f} s, p99 {outcome.stall_s(0.99):.2f} s; {seconds:.0f} s",
        flush=True,
    )
    for proof in dict.fromkeys(outcome.proofs):
        print(f"    · {proof}")
    if outcome.verdict in ("error", "broken"):
        if outcome.error:
            print("\n".join(f"    ! {line}" for line in [outcome.error, *outcome.waiting[:_SHOWN]]))
        for violation in outcome.violations[:_SHOWN]:
            print(f"    ! {violation.kind}: {violation.what}")
        path = keep(outcome, stage, _KEPT)
        again = f"python -m tests.faults --only {shlex.quote(outcome.fault.name.lower())} --seed {outcome.seed}"
        print(f"    again with: {again}\n    history and logs: {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
