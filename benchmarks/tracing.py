"""What traces cost: tokens/s and CPU of a server with an engine that echoes, without traces and with them.

python -m benchmarks.tracing             two servers at once, asked by turns; a table, and one JSON line last
python -m benchmarks.tracing --smoke     the smallest run

One server exports nothing; the other exports the set share of its requests to an OTLP receiver in this process, which
shares the cores with it. Each round asks the same of both, the one that begins changes with every round, and the
figures are medians. Tokens/s say what a user sees; CPU for each token does not depend on what else the machine does.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.services.otlp import receiving  # noqa: E402

from benchmarks.measures.figures import Figures, median, rounded, table  # noqa: E402
from benchmarks.measures.load import make_prompt, run_load  # noqa: E402
from benchmarks.measures.places import Place, Started, serving  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402

SEED = 0
NUM_WORDS = 32
NUM_STREAMS = 32
NUM_REQUESTS = 320
NUM_TOKENS = 128
ROUNDS = 24
RATIO = 0.1
GOAL = 0.97
"""Share of the tokens/s without traces that should be left with them."""


async def measure(server: Started, options: argparse.Namespace, number: int) -> Figures:
    """One round of one server."""
    prompts = [make_prompt(f"{SEED}/{number}/{index}", NUM_WORDS) for index in range(options.requests)]
    before = server.own_cpu_s()
    answers, wall_s = await run_load(server.endpoint, prompts, num_streams=options.streams, num_tokens=options.tokens)
    num_tokens = sum(answer.num_tokens for answer in answers)
    return {
        "tokens_per_s": num_tokens / wall_s,
        "cpu_token_us": 1e6 * (server.own_cpu_s() - before) / num_tokens,
        "ttft_p50_ms": 1000 * sorted(answer.ttft_s for answer in answers)[len(answers) // 2],
    }


async def measure_all(servers: dict[str, Started], options: argparse.Namespace) -> dict[str, list[Figures]]:
    """All rounds, the servers in turns."""
    found: dict[str, list[Figures]] = {name: [] for name in servers}
    for server in servers.values():
        await measure(server, argparse.Namespace(**{**vars(options), "requests": options.streams}), -1)  # warm
    for number in range(options.rounds):
        names = [*servers] if number % 2 else [*servers][::-1]
        for name in names:
            found[name].append(await measure(servers[name], options, number))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--requests", type=int, default=NUM_REQUESTS)
    parser.add_argument("--streams", type=int, default=NUM_STREAMS)
    parser.add_argument("--tokens", type=int, default=NUM_TOKENS)
    parser.add_argument("--ratio", type=float, default=RATIO, help="share of requests that are traced")
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run")
    options = parser.parse_args()
    if options.smoke:
        options.rounds, options.requests, options.streams, options.tokens = 1, 4, 2, 8
    return options


def main() -> None:
    options = parse()
    report = Report("tracing", options)
    with tempfile.TemporaryDirectory(prefix="axon-tracing-") as folder, receiving() as receiver, ExitStack() as stack:
        settings: dict[str, dict[str, Any]] = {
            "off": {},
            "on": {"traces_endpoint": receiver.url, "traces_sample_ratio": options.ratio},
        }
        servers = {
            name: stack.enter_context(
                serving(Place(name="embedded"), Path(folder) / name, "echo", options.streams, **own)
            )
            for name, own in settings.items()
        }
        rounds = asyncio.run(measure_all(servers, options))
    medians = {name: median(each) for name, each in rounds.items()}
    compared: Figures = {
        name: statistics.median(on[name] / off[name] for on, off in zip(rounds["on"], rounds["off"], strict=True))
        for name in medians["on"]
    }
    print(table({**medians, "on / off": compared}), flush=True)
    report.end(
        {
            "goal": {"tokens_per_s_ratio": GOAL},
            "medians": rounded(medians),
            "ratios": rounded({"on / off": compared})["on / off"],
            "spans": len(receiver.spans),
        }
    )


if __name__ == "__main__":
    main()
