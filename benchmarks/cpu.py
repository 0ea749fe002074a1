"""Axon and its peers on this machine's cores, whole servers over HTTP: the same weights, the same loads, one run.

python -m benchmarks.cpu                        a table for each load, and one JSON line last
python -m benchmarks.cpu --save                 also keeps the JSON in benchmarks/results/ and charts in docs/plots/
python -m benchmarks.cpu --streams 1 4          other numbers of streams at once
python -m benchmarks.cpu --loads chat           one of the two loads: looping, chat
python -m benchmarks.cpu --engines llama.cpp    only the peers whose name begins so
python -m benchmarks.cpu --without openvino     all peers but these

``make bench-peers`` installs the peers. One that cannot be run is an error (exit code 2, or 1 where it failed on the
way) unless it is left out by name. Axon runs twice, with and without speculative decoding (``axon-plain``). Each round
asks every engine in turn, so that a noisy moment hits one round of each; while one is measured the peers' processes are
stopped, and what Axon takes while idle is shown. No prompt is asked twice of one engine: no prefix cache helps.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from axon.text.template import ChatTemplate, load_template, require_template  # noqa: E402
from benchmarks.measures.comparison import (  # noqa: E402
    AXON,
    OURS,
    PLAIN,
    RATE,
    TTFT,
    best_peers,
    chart,
    gains,
    is_far_behind,
    table,
)
from benchmarks.measures.corpus import read_corpus  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded  # noqa: E402
from benchmarks.measures.load import LoadError, run_asks  # noqa: E402
from benchmarks.measures.loads import CHAT, LOOPING, SEED, Chat, Load, Looping, TooFewMessages  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.measures.speculation import Drafts, acceptance, drafts_of, read_drafts  # noqa: E402
from benchmarks.peers import engines  # noqa: E402
from benchmarks.peers.choice import CannotCompare, choose_peers  # noqa: E402
from benchmarks.peers.engines import Engine  # noqa: E402
from benchmarks.peers.server import NotServing, Server, running  # noqa: E402

STREAMS = (1, 4, 16)
ROUNDS = 3
IDLE_S = 2.0

Rounds = dict[str, dict[int, list[Figures]]]
Manifest = Mapping[str, dict[str, Any]]


class Contender:
    """An engine that serves."""

    def __init__(self, engine: Engine, server: Server, folder: Path) -> None:
        self.engine = engine
        self.server = server
        self._endpoint = engine.endpoint(server.port, folder)

    @property
    def name(self) -> str:
        return self.engine.name

    def measure(self, load: Load, round_number: int, num_streams: int) -> Figures:
        """One round, after a few tokens to warm up; raises LoadError."""
        asks = load.asks(self.name, round_number, num_streams)
        warm = load.warm(self.name, round_number, num_streams)
        self.server.resume()
        try:
            asyncio.run(run_asks(self._endpoint, [warm], num_streams=1))
            before_s, drafts_before = self.server.cpu_s(), self._drafts()
            ran = asyncio.run(run_asks(self._endpoint, asks, num_streams=num_streams))
            spent_s, drafts = self.server.cpu_s() - before_s, self._drafts().since(drafts_before)
        except ExceptionGroup as errors:
            raise LoadError(f"{errors.exceptions[0]!r}") from errors
        finally:
            self.rest()
        num_tokens = sum(each.num_tokens for each in ran.answers)
        figures = load.figures(ran) | {"cpu_ms_per_token": 1000 * spent_s / num_tokens}
        if self.engine.speculates:
            figures |= acceptance(drafts if self.name in OURS else drafts_of(ran.answers), num_tokens)
        return figures

    def rest(self) -> None:
        """Lets it take no time from the others."""
        if self.engine.can_pause:
            self.server.pause()

    def _drafts(self) -> Drafts:
        return read_drafts(self.server.metrics_port) if self.name in OURS else Drafts()


@contextmanager
def serving(chosen: Sequence[Engine], folder: Path) -> Iterator[list[Contender]]:
    """The engines, started one after the other; ends the program where one does not come up."""
    with ExitStack() as stack:
        contenders: list[Contender] = []
        for engine in chosen:
            print(f"  {engine.name} ({engine.version}): {engine.told}", flush=True)
            server = stack.enter_context(running(engine.server(folder)))
            try:
                server.wait()
            except NotServing as error:
                fail(f"{engine.name} did not come up: {error}\nMend it, or leave it out with --without {engine.name}.")
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


def measure(contenders: Sequence[Contender], load: Load, options: argparse.Namespace, failed: dict[str, str]) -> Rounds:
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
                    figures = each.measure(load, number, num_streams)
                except LoadError as error:
                    failed[each.name] = str(error)
                    print(f"  {each.name} failed: {error}", flush=True)
                    continue
                results[each.name][num_streams].append(figures)
                told = f"{figures[RATE]:.1f} tokens/s, TTFT {figures[TTFT]:.0f} ms"
                print(f"  {load.name}, round {number + 1}, {num_streams:2} streams, {each.name}: {told}", flush=True)
    return results


def choose(options: argparse.Namespace, manifest: Manifest) -> list[Engine]:
    """Axon twice and the peers that are wanted; ends the program where one of them cannot be run."""
    if options.smoke:
        return [engines.axon(kind="echo"), engines.axon(kind="echo", speculate=False, name=PLAIN), engines.echo_peer()]
    try:
        peers = choose_peers(manifest, only=options.engines, without=options.without, threads=options.threads)
    except CannotCompare as error:
        fail(str(error))
    for name, why in engines.notes(manifest).items():
        print(f"{name} is limited here: {why}")
    ours = {"dtype": options.dtype, "threads": options.threads}
    return [engines.axon(**ours), engines.axon(**ours, speculate=False, name=PLAIN), *peers]


def make_loads(options: argparse.Namespace) -> list[Load]:
    """The loads that are wanted; ends the program where the corpus is too small for them."""

    def render(text: str) -> str:
        return template(options.smoke).render([{"role": "user", "content": text}])

    chat = Chat(messages=read_corpus(), streams=options.streams, render=render)
    looping = Looping()
    if options.smoke:
        looping = Looping(num_tokens=16)
        chat = Chat(messages=chat.messages, streams=chat.streams, render=chat.render, max_tokens=16, asks_of_a_stream=2)
    by_name: dict[str, Load] = {LOOPING: looping, CHAT: chat}
    if CHAT in options.loads:
        try:
            chat.check(options.rounds)
        except TooFewMessages as error:
            fail(str(error))
    return [by_name[name] for name in options.loads]


@cache
def template(smoke: bool) -> ChatTemplate:
    """The template of the model folder, which the first start of Axon makes."""
    return require_template(load_template(None if smoke else engines.MODEL_DIR))


def run(
    options: argparse.Namespace, chosen: Sequence[Engine], failed: dict[str, str]
) -> tuple[dict[str, Rounds], dict[str, float]]:
    """The rounds of those that came through, by load, and what each took while idle."""
    loads = make_loads(options)
    print(f"seed {SEED}, {options.rounds} rounds, streaming")
    with tempfile.TemporaryDirectory(prefix="axon-bench-") as folder, serving(chosen, Path(folder)) as contenders:
        idle = idle_shares(contenders)
        print(f"  idle, of a core: {idle}", flush=True)
        results = {load.name: measure(contenders, load, options, failed) for load in loads}
    came = {
        name: {each: by_streams for each, by_streams in rounds.items() if each not in failed}
        for name, rounds in results.items()
    }
    compared = next(iter(came.values()))
    if AXON not in compared or not compared.keys() - set(OURS):
        fail(f"nothing to compare: of {[engine.name for engine in chosen]} only {list(compared)} came through")
    return came, idle


def told_of_load(medians: Mapping[str, Mapping[int, Figures]], rounds: Rounds) -> dict[str, Any]:
    """A load's part of the JSON."""
    best, soonest = best_peers(medians), best_peers(medians, TTFT)
    return {
        "ratio_to_best_peer": {str(num): each.ratio for num, each in best.items()},
        "best_peer": {str(num): each.name for num, each in best.items()},
        "ttft_ratio_to_best_peer": {str(num): each.ratio for num, each in soonest.items()},
        "best_ttft_peer": {str(num): each.name for num, each in soonest.items()},
        "speculation_gain": {str(num): gain for num, gain in gains(medians).items()},
        "engines": {
            name: {
                "streams": rounded({str(num): figures for num, figures in by_streams.items()}),
                "tokens_per_s_by_round": {
                    str(num): [round(one[RATE], 1) for one in each] for num, each in rounds[name].items()
                },
            }
            for name, by_streams in medians.items()
        },
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=STREAMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--loads", nargs="+", choices=(LOOPING, CHAT), default=[LOOPING, CHAT])
    parser.add_argument("--engines", nargs="+", default=[], metavar="NAME", help="only these peers")
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME", help="all peers but these")
    parser.add_argument("--threads", type=int, default=engines.NUM_THREADS, help="of every engine's arithmetic")
    parser.add_argument("--dtype", default="int8", help="of Axon's engine")
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model and no installed peer")
    options = parser.parse_args()
    if options.smoke:
        options.streams, options.rounds = [2], 1
    return options


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers are ended then as with ctrl-c
    report = Report("cpu", options)
    manifest = {} if options.smoke else engines.read_manifest()
    failed: dict[str, str] = {}
    chosen = choose(options, manifest)
    sentences = {load.name: load.sentence for load in make_loads(options)}
    results, idle = run(options, chosen, failed)
    told: dict[str, dict[str, Any]] = {}
    charts: dict[str, str] = {}
    for name, by_engine in results.items():
        medians = {each: {num: median(rounds) for num, rounds in by.items()} for each, by in by_engine.items()}
        print(f"\n{name}: {sentences[name]}\n\n{table(medians)}")
        told[name] = {"load": sentences[name], **told_of_load(medians, by_engine)}
        charts[name] = chart(medians, f"{name}: {sentences[name]}")
    if report.is_kept:
        draw(charts)
    report.end(
        {
            "peers": [engine.name for engine in chosen if engine.name not in OURS and engine.name not in failed],
            "without": options.without,
            "not_compared": failed,
            "limited": engines.notes(manifest),
            "engines": {
                each.name: {"version": each.version, "command": each.told, "idle_share_of_a_core": idle[each.name]}
                for each in chosen
            },
            "loads": told,
        }
    )
    if failed:
        print(f"benchmarks.cpu: {', '.join(failed)} failed on the way and is not compared", file=sys.stderr)
    return 1 if failed else 0


def draw(charts: Mapping[str, str]) -> None:
    """Puts the charts where README and pages show them."""
    for name, page in charts.items():
        target = "cpu.svg" if name == LOOPING else f"cpu-{name}.svg"
        (ROOT / "docs" / "plots" / target).write_text(page)


def fail(message: str) -> NoReturn:
    """Ends the program."""
    print(f"benchmarks.cpu: {message}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    sys.exit(main())
