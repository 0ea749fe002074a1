"""Axon and its peers on this machine's cores, whole servers over HTTP: the same weights, the same load, one run.

python -m benchmarks.cpu                        a table, and one JSON line last
python -m benchmarks.cpu --save                 also keeps the JSON in benchmarks/results/ and the chart in docs/plots/
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measures.comparison import AXON, RATE, best_peers, chart, is_far_behind, table  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded  # noqa: E402
from benchmarks.measures.load import LoadError, figures_of, make_prompt, run_load  # noqa: E402
from benchmarks.measures.machine import load_average, machine  # noqa: E402
from benchmarks.peers import engines  # noqa: E402
from benchmarks.peers.engines import Engine  # noqa: E402
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
        self._endpoint = engine.endpoint(server.port, folder)

    @property
    def name(self) -> str:
        return self.engine.name

    def measure(self, round_number: int, num_streams: int, num_tokens: int) -> Figures:
        """One round, after a few tokens to warm up; raises LoadError."""
        seed = f"{SEED}/{self.name}/{round_number}/{num_streams}"
        prompts = [make_prompt(f"{seed}/{index}", NUM_WORDS) for index in range(max(FEWEST_REQUESTS, num_streams))]
        warm = [make_prompt(f"{seed}/warm", NUM_WORDS // 8)]
        self.server.resume()
        try:
            asyncio.run(run_load(self._endpoint, warm, num_streams=1, num_tokens=WARM_TOKENS))
            before_s = self.server.cpu_s()
            load = run_load(self._endpoint, prompts, num_streams=num_streams, num_tokens=num_tokens)
            figures = figures_of(*asyncio.run(load))
            spent_s = self.server.cpu_s() - before_s
            return figures | {"cpu_ms_per_token": 1000 * spent_s / (len(prompts) * num_tokens)}
        except ExceptionGroup as errors:
            raise LoadError(f"{errors.exceptions[0]!r}") from errors
        finally:
            self.rest()

    def rest(self) -> None:
        """Lets it take no time from the others."""
        if self.engine.can_pause:
            self.server.pause()


@contextmanager
def serving(chosen: Sequence[Engine], folder: Path, failed: dict[str, str]) -> Iterator[list[Contender]]:
    """The engines that come up, started one after the other; of those that do not, ``failed`` gets the reason."""
    with ExitStack() as stack:
        contenders: list[Contender] = []
        for engine in chosen:
            print(f"  {engine.name} ({engine.version}): {engine.told}", flush=True)
            server = stack.enter_context(running(engine.server(folder)))
            try:
                server.wait()
            except NotServing as error:
                failed[engine.name] = str(error)
                print(f"    did not come up: {error}", flush=True)
                continue
            contenders.append(Contender(engine, server, folder))
            contenders[-1].rest()
        yield contenders


def idle_shares(contenders: Sequence[Contender]) -> dict[str, float]:
    """Of a core, what each takes while nobody asks it anything and it is not stopped."""
    for each in contenders:
        each.server.resume()
    time.sleep(IDLE_S)
    before = {each.name: each.server.cpu_s() for each in contenders}
    time.sleep(IDLE_S)
    shares = {each.name: round((each.server.cpu_s() - before[each.name]) / IDLE_S, 3) for each in contenders}
    for each in contenders:
        each.rest()
    return shares


def measure(
    contenders: Sequence[Contender], options: argparse.Namespace, num_tokens: int, failed: dict[str, str]
) -> Rounds:
    """Figures by engine and number of streams.

    A peer that fails is left out from then on; one that is far behind after the first round has only that one.
    """
    results: Rounds = {each.name: {num: [] for num in options.streams} for each in contenders}
    for number in range(options.rounds):
        first = number % len(contenders)  # the order changes from round to round
        for num_streams in options.streams:
            rates = {name: median(by[num_streams])[RATE] for name, by in results.items() if by[num_streams]}
            for each in [*contenders[first:], *contenders[:first]]:
                if each.name in failed or is_far_behind(each.name, rates):
                    continue
                try:
                    figures = each.measure(number, num_streams, num_tokens)
                except LoadError as error:
                    failed[each.name] = str(error)
                    print(f"  {each.name} failed: {error}", flush=True)
                    continue
                results[each.name][num_streams].append(figures)
                rate = figures[RATE]
                print(f"  round {number + 1}, {num_streams:2} streams, {each.name}: {rate:.1f} tokens/s", flush=True)
    return {name: by_streams for name, by_streams in results.items() if name not in failed}


def choose(options: argparse.Namespace, manifest: Mapping[str, dict[str, Any]]) -> list[Engine]:
    """Axon and the peers that are wanted and installed; ends the program where there is none."""
    if options.smoke:
        return [engines.axon(kind="echo"), engines.echo_peer()]
    for name, why in engines.missing_peers(manifest).items():
        print(f"{name} is not installed: {why}")
    for name, why in engines.notes(manifest).items():
        print(f"{name} is limited here: {why}")
    peers = engines.installed_peers(manifest, options.threads)
    names = options.engines
    wanted = [peer for peer in peers if not names or any(peer.name.startswith(name) for name in names)]
    if not wanted:
        fail("no peer to compare with is installed: run `make bench-peers` first (it builds llama.cpp: half an hour)")
    return [engines.axon(dtype=options.dtype, threads=options.threads), *wanted]


def run(
    options: argparse.Namespace, chosen: Sequence[Engine], failed: dict[str, str]
) -> tuple[Rounds, dict[str, float]]:
    """The rounds of those that came through, and what each took while idle."""
    num_tokens = 16 if options.smoke else NUM_TOKENS
    print(f"seed {SEED}, {options.rounds} rounds, {NUM_WORDS} prompt words, {num_tokens} tokens, greedy, streaming")
    with (
        tempfile.TemporaryDirectory(prefix="axon-bench-") as folder,
        serving(chosen, Path(folder), failed) as contenders,
    ):
        idle = idle_shares(contenders)
        print(f"  idle, of a core: {idle}", flush=True)
        results = measure(contenders, options, num_tokens, failed)
    if AXON not in results or len(results) < 2:
        fail(f"nothing to compare: of {[engine.name for engine in chosen]} only {list(results)} came through")
    return results, idle


def told_of(engine: Engine, idle: float, rounds: Mapping[int, list[Figures]]) -> dict[str, Any]:
    """An engine's part of the JSON."""
    return {
        "version": engine.version,
        "command": engine.told,
        "idle_share_of_a_core": idle,
        "streams": rounded({str(num): median(each) for num, each in rounds.items()}),
        "tokens_per_s_by_round": {str(num): [round(one[RATE], 1) for one in each] for num, each in rounds.items()},
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=STREAMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--engines", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--threads", type=int, default=engines.NUM_THREADS, help="of every engine's arithmetic")
    parser.add_argument("--dtype", default="int8", help="of Axon's engine")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results/")
    parser.add_argument("--note", default="", help="a word on the circumstances, kept with the result")
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model and no installed peer")
    options = parser.parse_args()
    if options.smoke:
        options.streams, options.rounds = [2], 1
    return options


def main() -> None:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers are ended then as with ctrl-c
    command = shlex.join(["python", "-m", "benchmarks.cpu", *sys.argv[1:]])
    started, load_before = time.perf_counter(), load_average()
    print(f"{command}\nmachine {machine()}, load average {load_before}")
    manifest = {} if options.smoke else engines.read_manifest()
    failed = engines.missing_peers(manifest)
    chosen = choose(options, manifest)
    results, idle = run(options, chosen, failed)
    medians = {name: {num: median(rounds) for num, rounds in by.items()} for name, by in results.items()}
    print(table(medians))
    best = best_peers(medians)
    result = {
        "benchmark": "cpu",
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_average": {"before": load_before, "after": load_average()},
        "seconds": round(time.perf_counter() - started),
        "note": options.note,
        "peers": [name for name in medians if name != AXON],
        "not_compared": failed,
        "limited": engines.notes(manifest),
        "ratio_to_best_peer": {str(num): each.ratio for num, each in best.items()},
        "best_peer": {str(num): each.name for num, each in best.items()},
        "ttft_ratio_to_best_peer": {str(num): each.ratio for num, each in best_peers(medians, "ttft_p50_ms").items()},
        "engines": {
            engine.name: told_of(engine, idle[engine.name], results[engine.name])
            for engine in chosen
            if engine.name in results
        },
    }
    if options.save:
        path = ROOT / "benchmarks" / "results" / f"cpu-{datetime.now(UTC):%Y-%m-%d}.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
        (ROOT / "docs" / "plots" / "cpu.svg").write_text(chart(medians))
    print(json.dumps(result))


def fail(message: str) -> NoReturn:
    """Ends the program."""
    print(f"benchmarks.cpu: {message}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
