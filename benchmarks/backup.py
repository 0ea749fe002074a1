"""How long a backup, its verification and a restore take, on both databases.

python -m benchmarks.backup                    20,000 turns of 4 kB on SQLite and on a real PostgreSQL
python -m benchmarks.backup --turns 200000     more of them
python -m benchmarks.backup --save             also keeps the JSON in benchmarks/results/

Commands are run as an operator runs them, each in a process of its own, with nothing else to do. Rates are turns per
second and bytes of the encoded turns per second. The same machine holds the database, the archive and the commands.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.backup.places import Place, postgres_place, sqlite_place  # noqa: E402

from benchmarks.measures.figures import Figures, rounded, table  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402

NUM_TURNS, TURN_BYTES = 20_000, 4_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=NUM_TURNS)
    parser.add_argument("--smoke", action="store_true", help="a few turns, to see that it runs")
    add_report_options(parser)
    options = parser.parse_args()
    num_turns = 50 if options.smoke else options.turns
    report = Report("backup", options)
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="axon-bench-backup-") as folder, ExitStack() as stack:
        for name, make in (("SQLite", sqlite_place), ("PostgreSQL", postgres_place)):
            places = []
            for role in ("source", "target"):
                (Path(folder) / f"{name}-{role}").mkdir()
                places.append(stack.enter_context(make(Path(folder) / f"{name}-{role}")))
            found[name] = measure(places[0], places[1], Path(folder) / f"{name}.backup", num_turns)
    print(table(found))
    report.end(
        {
            "turns": num_turns,
            "databases": rounded(found),
        }
    )


def measure(source: Place, target: Place, archive: Path, num_turns: int) -> Figures:
    """Seconds of each command, and what they come to for a turn."""
    source.fill(num_turns=num_turns, num_bytes=TURN_BYTES)
    num_bytes = sum(size for (size,) in source.rows("turns", "bytes"))
    created = timed(source, "create", str(archive))
    verified = timed(source, "verify", str(archive))
    restored = timed(target, "restore", str(archive))
    return {
        "MB of turns": num_bytes / 1e6,
        "archive MB": archive.stat().st_size / 1e6,
        "create s": created,
        "verify s": verified,
        "restore s": restored,
        "created turns/s": num_turns / created,
        "restored turns/s": num_turns / restored,
        "restored MB/s": num_bytes / 1e6 / restored,
    }


def timed(place: Place, *arguments: str) -> float:
    """Seconds of a command, its start included."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **place.environ}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "axon", "backup", *arguments], env=environ, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
