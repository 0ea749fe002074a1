"""Axon and its peers on this machine's cores, whole servers over HTTP: the same weights, the same load, one run.

python -m benchmarks.cpu                        a table, and one JSON line last
python -m benchmarks.cpu --save                 also keeps the JSON in benchmarks/results/
python -m benchmarks.cpu --streams 1 4          other numbers of streams at once
python -m benchmarks.cpu --engines llama.cpp    only the peers whose name begins so

``make bench-peers`` installs the peers. Each round asks every engine in turn, so that a noisy moment hits one round of
each; while one is measured the peers' processes are stopped, and what Axon takes while idle is shown. Prompts are fresh
for every round and engine: no prefix cache helps.
"""

import argparse
import asyncio
import json
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measures.figures import Figures, median, rounded, shown  # noqa: E402
from benchmarks.measures.load import LoadError, figures_of, make_prompt, run_load  # noqa: E402
from benchmarks.measures.machine import load_average, machine  # noqa: E402
from benchmarks.peers import engines  # noqa: E402
from benchmarks.peers.engines import AXON, Engine  # noqa: E402
from benchmarks.peers.server import NotServing, Server, running  # noqa: E402

SEED = 0
NUM_WORDS = 128
NUM_TOKENS = 128
STREAMS = (1, 4, 16)
ROUNDS = 3
FEWEST_REQUESTS = 2
"""Of a round; else as many as there are streams."""
WARM_TOKENS = 8
IDLE_S = 2.0

Rounds = dict[str, dict[int, list[Figures]]]


class Contender:
    """An engine that serves."""

    def __init__(self, engine: Engine, server: Server, folder: Path) -> None:
        self.engine = engine
        self.server = server
        self.endpoint = engine.endpoint(server.port, folder)

    @property
    def name(self) -> str:
        return self.engine.name

    def measure(self, round_number: int, num_streams: int, num_tokens: int) -> Figures:
        """One round, after a few tokens to warm up."""
        with self._at_work():
            seed = f"{SEED}/{self.name}/{round_number}/{num_streams}"
            num_requests = max(FEWEST_REQUESTS, num_streams)
            prompts = [make_prompt(f"{seed}/{index}", NUM_WORDS) for index in range(num_requests)]
            warm = [make_prompt(f"{seed}/warm", NUM_WORDS // 8)]
            asyncio.run(run_load(self.endpoint, warm, num_streams=1, num_tokens=WARM_TOKENS))
            answers, wall_s = asyncio.run(
                run_load(self.endpoint, prompts, num_streams=num_streams, num_tokens=num_tokens)
            )
        return figures_of(answers, wall_s)

    def rest(self) -> None:
        if self.engine.can_pause:
            self.server.pause()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self.server.resume()
        try:
            yield
        finally:
            self.rest()


@contextmanager
def serving(chosen: Sequence[Engine], folder: Path) -> Iterator[tuple[list[Contender], dict[str, str]]]:
    """The engines that come up, one after the other, and why the others did not."""
    with ExitStack() as stack:
        contenders: list[Contender] = []
        failed: dict[str, str] = {}
        for engine in chosen:
            print(f"  {engine.name} {engine.version}: {engine.told}", flush=True)
            server = stack.enter_context(running(engine.server(folder)))
            try:
                server.wait()
            except NotServing as error:
                failed[engine.name] = str(error)
                print(f"    did not come up: {error}", flush=True)
                continue
            contenders.append(Contender(engine, server, folder))
        yield contenders, failed


def idle_shares(contenders: Sequence[Contender]) -> dict[str, float]:
    """Of a core, what each takes while nobody asks it anything."""
    before = {each.name: each.server.cpu_s() for each in contenders}
    time.sleep(IDLE_S)
    return {each.name: round((each.server.cpu_s() - before[each.name]) / IDLE_S, 3) for each in contenders}


def measure(contenders: Sequence[Contender], *, streams: Sequence[int], rounds: int, num_tokens: int) -> Rounds:
    """Figures by engine and number of streams; the order within a round changes from round to round."""
    results: Rounds = {each.name: {num: [] for num in streams} for each in contenders}
    for number in range(rounds):
        first = number % len(contenders)
        for num_streams in streams:
            for each in [*contenders[first:], *contenders[:first]]:
                figures = each.measure(number, num_streams, num_tokens)
                results[each.name][num_streams].append(figures)
                rate = figures["tokens_per_s"]
                print(f"  round {number + 1}, {num_streams:2} streams, {each.name}: {rate:.1f} tokens/s", flush=True)
    return results


def ratios(medians: dict[str, dict[int, Figures]], figure: str = "tokens_per_s") -> dict[str, dict[str, Any]]:
    """Axon against the best peer, by number of streams; more is better for a rate, less for a time."""
    found: dict[str, dict[str, Any]] = {}
    best = max if figure == "tokens_per_s" else min
    for num_streams, own in medians[AXON].items():
        peers = {name: by_streams[num_streams][figure] for name, by_streams in medians.items() if name != AXON}
        name = best(peers, key=lambda each: peers[each])
        found[str(num_streams)] = {"best_peer": name, "ratio": float(f"{own[figure] / peers[name]:.3g}")}
    return found


def table(medians: dict[str, dict[int, Figures]]) -> str:
    """Markdown, a row for each engine and number of streams."""
    lines = [
        "| streams | engine | tokens/s | TTFT p50 ms | TPOT p50 ms | against the best peer |",
        "|---|---|---|---|---|---|",
    ]
    best = ratios(medians)
    for num_streams in medians[AXON]:
        by_rate = sorted(medians, key=lambda name: -medians[name][num_streams]["tokens_per_s"])
        top = best[str(num_streams)]["best_peer"]
        for name in by_rate:
            row = medians[name][num_streams]
            ratio = row["tokens_per_s"] / medians[top][num_streams]["tokens_per_s"]
            cells = [shown(row[figure]) for figure in ("tokens_per_s", "ttft_p50_ms", "tpot_p50_ms")]
            lines.append(f"| {num_streams} | {name} | {' | '.join(cells)} | {ratio:.2f}× |")
    return "\n".join(lines)


def choose(names: Sequence[str], *, dtype: str, smoke: bool) -> list[Engine]:
    """Axon and the peers whose names begin as one of ``names``, all of them for none; exits where no peer is there."""
    if smoke:
        return [engines.axon(kind="echo"), engines.echo_peer()]
    manifest = engines.read_manifest()
    for name, why in engines.missing_peers(manifest).items():
        print(f"{name} is not installed: {why}")
    peers = engines.installed_peers(manifest)
    wanted = [peer for peer in peers if not names or any(peer.name.startswith(name) for name in names)]
    if not wanted:
        _fail("no peer to compare with is installed: run `make bench-peers` first (the builds take about half an hour)")
    return [engines.axon(dtype=dtype), *wanted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=STREAMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--engines", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--dtype", default="int8", help="of Axon's engine")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results/")
    parser.add_argument("--note", default="", help="a word on the circumstances, kept with the result")
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model, no peer, one stream")
    options = parser.parse_args()
    if options.smoke:
        options.streams, options.rounds = [2], 1
    num_tokens = 16 if options.smoke else NUM_TOKENS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are ended then as with ctrl-c
    command = shlex.join(["python", "-m", "benchmarks.cpu", *sys.argv[1:]])
    started, load_before = time.perf_counter(), load_average()
    print(f"{command}\nmachine {machine()}, load average {load_before}")
    print(f"seed {SEED}, {options.rounds} rounds, {NUM_WORDS} prompt words, {num_tokens} tokens, greedy, streaming")
    chosen = choose(options.engines, dtype=options.dtype, smoke=options.smoke)
    with (
        tempfile.TemporaryDirectory(prefix="axon-bench-") as folder,
        serving(chosen, Path(folder)) as (contenders, failed),
    ):
        names = [each.name for each in contenders]
        if AXON not in names or len(names) < 2:
            _fail(f"nothing to compare: only {names} came up")
        idle = idle_shares(contenders)
        print(f"  idle, of a core: {idle}")
        for each in contenders:
            each.rest()
        try:
            results = measure(contenders, streams=options.streams, rounds=options.rounds, num_tokens=num_tokens)
        except* LoadError as errors:
            _fail(f"an answer that does not count: {errors.exceptions[0]}")
    medians = {name: {num: median(rounds) for num, rounds in by.items()} for name, by in results.items()}
    print(table(medians))
    told = {engine.name: engine for engine in chosen}
    result = {
        "benchmark": "cpu",
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_average": {"before": load_before, "after": load_average()},
        "seconds": round(time.perf_counter() - started),
        "note": options.note,
        "peers": [name for name in medians if name != AXON],
        "not_compared": {**engines.missing_peers(engines.read_manifest()), **failed} if not options.smoke else failed,
        "ratio_to_best_peer": {num: each["ratio"] for num, each in ratios(medians).items()},
        "best_peer": {num: each["best_peer"] for num, each in ratios(medians).items()},
        "ttft_ratio_to_best_peer": {num: each["ratio"] for num, each in ratios(medians, "ttft_p50_ms").items()},
        "engines": {
            name: {
                "version": told[name].version,
                "command": told[name].told,
                "idle_share_of_a_core": idle[name],
                "streams": rounded({str(num): row for num, row in by.items()}),
                "tokens_per_s_by_round": {
                    str(num): [round(each["tokens_per_s"], 1) for each in rounds]
                    for num, rounds in results[name].items()
                },
            }
            for name, by in medians.items()
        },
    }
    if options.save:
        path = ROOT / "benchmarks" / "results" / f"cpu-{result['date'][:10]}.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))


def _fail(message: str) -> NoReturn:
    print(f"benchmarks.cpu: {message}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
