"""What it saves to send the tokens of streams in rounds (``worker.gather_s``), in CPU a token, without a model.

python -m benchmarks.rounds                          embedded and as a fleet; a table, and one JSON line last
python -m benchmarks.rounds --gather 0 0.03 --step 0.02 --streams 128
python -m benchmarks.rounds --save                   also keeps the JSON in benchmarks/results/

An engine that echoes, with steps of ``--step`` seconds and a token for each stream in each; answers of ``--tokens``
tokens, whose requests are part of the figure. A server is started for each value, and all values come in turn, forwards
and backwards. CPU is that of all processes of the server and its services; the engine's is told apart.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks.measures.cpu_time import cpu_by_part, read_processes  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded, table  # noqa: E402
from benchmarks.measures.load import make_prompt, run_load  # noqa: E402
from benchmarks.measures.places import NAMES, Place, places, serving  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402

NUM_WORDS = 8


async def measure(place: Place, folder: Path, gather_s: float, tag: str, options: argparse.Namespace) -> Figures:
    settings = {"worker_gather_s": gather_s, "engine_echo_step_s": options.step}
    with serving(place, folder, "echo", options.streams, **settings) as server:
        await run_load(server.endpoint, [make_prompt("warm", NUM_WORDS)] * 8, num_streams=8, num_tokens=4)
        prompts = [make_prompt(f"{tag}/{index}", NUM_WORDS) for index in range(options.streams)]
        before = cpu_by_part(read_processes(), server.roots)
        answers, wall_s = await run_load(
            server.endpoint, prompts, num_streams=options.streams, num_tokens=options.tokens
        )
        after = cpu_by_part(read_processes(), server.roots)
    num_tokens = sum(each.num_tokens for each in answers)
    spent = {part: 1e6 * (after[part] - before[part]) / num_tokens for part in after}
    own = {part: each for part, each in spent.items() if part != "engine"}
    return {"tokens_per_s": num_tokens / wall_s, "cpu_token_us": sum(own.values())} | {
        f"cpu of {part}": each for part, each in spent.items()
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", nargs="+", choices=NAMES, default=["embedded", "fleet"])
    parser.add_argument("--gather", nargs="+", type=float, default=[0.0, 0.02, 0.03, 0.04])
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--step", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=2)
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: the twins only")
    options = parser.parse_args()
    if options.smoke:
        options.places, options.gather, options.tokens, options.rounds = ["embedded"], [0.0, 0.03], 20, 1
    return options


def main() -> None:
    options = parse()
    report = Report("rounds", options)
    rows: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="axon-rounds-") as folder, places(options.places) as found:
        for place in found:
            seen: dict[float, list[Figures]] = {each: [] for each in options.gather}
            for number in range(options.rounds):
                for gather_s in options.gather if number % 2 == 0 else options.gather[::-1]:
                    tag, own = f"{number}/{gather_s}", Path(folder) / place.name
                    seen[gather_s].append(asyncio.run(measure(place, own, gather_s, tag, options)))
            rows |= {f"{place.name}, gather {each:g} s": median(figures) for each, figures in seen.items()}
    print(table(rows))
    report.end(
        {
            "rows": rounded(rows),
        }
    )


if __name__ == "__main__":
    main()
