"""Axon and other servers of embeddings on this machine's cores, over HTTP: the same weights, the same texts, one run.

python -m benchmarks.embeddings                       a table, and one JSON line last
python -m benchmarks.embeddings --save                also keeps the JSON in benchmarks/results/
python -m benchmarks.embeddings --without llama.cpp   all peers but those whose name begins so
python -m benchmarks.embeddings --smoke               the smallest run: no model and no installed peer

``python -m benchmarks.peers.embedding_engines`` installs the peers. One that cannot be run is an error (exit code 2, or
1 where it failed on the way) unless it is left out by name. Each round asks every server in turn; the peers' processes
are stopped while another one is measured. Every server's vectors are compared with those of the first peer.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measures.embedding_load import KINDS, SHORT_WORDS, Kind, run_kind, texts, vectors_of  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded, shown  # noqa: E402
from benchmarks.measures.load import LoadError  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.peers import embedding_engines as engines  # noqa: E402
from benchmarks.peers.engines import NUM_THREADS, Engine  # noqa: E402
from benchmarks.peers.server import NotServing, Server, running  # noqa: E402

ROUNDS = 3
RATE, P50 = "inputs_per_s", "p50_ms"
GOALS = {"one": 1.0, "32": 1.5}
"""The least ratio of Axon's best inputs/s to those of the best peer, by how the load's name begins."""
LEAST_COSINE = 0.999
"""A peer whose vectors are further from those of sentence-transformers is shown, and not what the goal is against."""
_COMPARED = 8
"""Texts whose vectors are compared, besides long ones."""

Rounds = dict[str, dict[str, list[Figures]]]


class Contender:
    """A server that runs."""

    def __init__(self, engine: Engine, server: Server, folder: Path) -> None:
        self.engine, self._server = engine, server
        self._endpoint = engine.endpoint(server.port, folder)

    @property
    def name(self) -> str:
        return self.engine.name

    def measure(self, kind: Kind, round_number: int, share: float) -> Figures:
        """One round; raises LoadError."""
        with self._awake():
            before_s = self._server.cpu_s()
            figures = asyncio.run(run_kind(self._endpoint, kind, round_number, share))
            return {**figures, "cpu_s": self._server.cpu_s() - before_s}

    def vectors(self, inputs: Sequence[str]) -> list[list[float]]:
        """The vectors of some texts."""
        with self._awake():
            return asyncio.run(vectors_of(self._endpoint, inputs))

    def rest(self) -> None:
        """Lets it take no time from the others."""
        if self.engine.can_pause:
            self._server.pause()

    @contextmanager
    def _awake(self) -> Iterator[None]:
        self._server.resume()
        try:
            yield
        finally:
            self.rest()


@contextmanager
def serving(chosen: Sequence[Engine], folder: Path) -> Iterator[list[Contender]]:
    """The servers, started one after the other; ends the program where one does not come up."""
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


def measure(contenders: Sequence[Contender], options: argparse.Namespace, failed: dict[str, str]) -> Rounds:
    """Figures by server and load; one that fails is left out from then on."""
    results: Rounds = {each.name: {} for each in contenders}
    for number in range(options.rounds):
        first = number % len(contenders)  # the order changes from round to round
        for kind in KINDS:
            for each in [*contenders[first:], *contenders[:first]]:
                if each.name in failed:
                    continue
                try:
                    figures = each.measure(kind, number, options.share)
                except LoadError as error:
                    failed[each.name] = str(error)
                    print(f"  {each.name} failed: {error}", flush=True)
                    continue
                results[each.name].setdefault(kind.name, []).append(figures)
                told = f"{shown(figures[RATE])} inputs/s, p50 {shown(figures[P50])} ms"
                print(f"  round {number + 1}, {kind.name}, {each.name}: {told}", flush=True)
    return {name: by for name, by in results.items() if name not in failed}


def cosines(contenders: Sequence[Contender], reference: str) -> dict[str, float]:
    """The least cosine of each server's vectors to those of the reference."""
    short, long = (next(kind for kind in KINDS if kind.name == name) for name in ("32 short in one", "one long"))
    inputs = [*texts(short, 99, _COMPARED), *texts(long, 99, 2)]
    found = {each.name: each.vectors(inputs) for each in contenders}
    if reference not in found:
        return {}
    return {
        name: min(_cosine(one, other) for one, other in zip(rows, found[reference], strict=True))
        for name, rows in found.items()
    }


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return float(product / (sum(a * a for a in one) * sum(b * b for b in other)) ** 0.5)


def ratios(medians: Mapping[str, Mapping[str, Figures]], same: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """By load: the best peer whose vectors are right, Axon's inputs/s over its, and the same for the best of all."""
    found: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        rates = {name: by[kind.name][RATE] for name, by in medians.items()}
        ours = [name for name in rates if name.startswith("axon")]
        peers = [name for name in rates if name not in ours]
        right = [name for name in peers if same.get(name, 1.0) >= LEAST_COSINE] or peers
        goal = next(goal for prefix, goal in GOALS.items() if kind.name.startswith(prefix))
        found[kind.name] = {"goal": goal}
        for word, among in (("best_peer", right), ("best_of_all", peers)):
            best = max(among, key=rates.__getitem__)
            over = {name: float(f"{rates[name] / rates[best]:.3g}") for name in ours}
            found[kind.name][word] = {"name": best, "ratios": over}
    return found


def table(medians: Mapping[str, Mapping[str, Figures]]) -> str:
    """Markdown: a row for each server, a column for each load: inputs/s, and in brackets the p50 of a request."""
    lines = [
        f"| server | {' | '.join(kind.name for kind in KINDS)} |",
        f"|---|{'---|' * len(KINDS)}",
    ]
    for name, by in medians.items():
        cells = (f"{shown(by[kind.name][RATE])} ({shown(by[kind.name][P50])} ms)" for kind in KINDS)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def choose(options: argparse.Namespace) -> list[Engine]:
    """Axon in both arithmetics and the peers that are wanted; ends the program where one of them cannot be run."""
    if options.smoke:
        command = (sys.executable, engines.SERVER, "--port", "{port}", "--backend", "echo")
        return [engines.axon_echo(), Engine(name="echo-peer", version="1", command=command, model="minilm")]
    try:
        peers = engines.peers(options.threads)
    except engines.NotInstalled as error:
        fail(str(error))
    for name in options.without:
        if not any(peer.name.startswith(name) for peer in peers):
            fail(f"there is no peer {name}: choose among {', '.join(peer.name for peer in peers)}")
    wanted = [peer for peer in peers if not peer.name.startswith(tuple(options.without) or ("\0",))]
    return [*(engines.axon(dtype, options.threads) for dtype in options.dtypes), *wanted]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME", help="all peers but these")
    parser.add_argument("--dtypes", nargs="+", default=list(engines.AXON_DTYPES), help="of Axon's engine")
    parser.add_argument("--threads", type=int, default=NUM_THREADS, help="of every server's arithmetic")
    parser.add_argument("--share", type=float, default=1.0, help="of the requests of a round")
    add_report_options(parser)
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model and no installed peer")
    options = parser.parse_args()
    if options.smoke:
        options.rounds, options.share = 1, 0.01
    return options


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the servers are ended then as with ctrl-c
    report = Report("embeddings", options)
    chosen, failed = choose(options), dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="axon-bench-") as folder, serving(chosen, Path(folder)) as contenders:
        same = {} if options.smoke else cosines(contenders, "sentence-transformers")
        results = measure(contenders, options, failed)
    if not any(name.startswith("axon") for name in results) or all(name.startswith("axon") for name in results):
        fail(f"nothing to compare: only {list(results)} came through; {failed}")
    medians = {name: {kind: median(rounds) for kind, rounds in by.items()} for name, by in results.items()}
    compared = ratios(medians, same)
    print(f"\ninputs/s (p50 of a request), {SHORT_WORDS + 2} and 200 tokens\n\n{table(medians)}\n")
    for kind, each in compared.items():
        best, of_all = each["best_peer"], each["best_of_all"]
        print(
            f"{kind}: {best['ratios']} of {best['name']}, goal {each['goal']}; {of_all['ratios']} of {of_all['name']}"
        )
    report.end(
        {
            "without": options.without,
            "not_compared": failed,
            "loads": {kind.name: kind.sentence for kind in KINDS},
            "least_cosine": {name: round(value, 6) for name, value in same.items()},
            "servers": {each.name: {"version": each.version, "command": each.told} for each in chosen},
            "medians": {name: rounded(by) for name, by in medians.items()},
            "inputs_per_s_by_round": {
                name: {kind: [round(one[RATE], 1) for one in rounds] for kind, rounds in by.items()}
                for name, by in results.items()
            },
            "compared": compared,
        }
    )
    if failed:
        print(f"benchmarks.embeddings: {', '.join(failed)} failed on the way and is not compared", file=sys.stderr)
    return 1 if failed else 0


def fail(message: str) -> NoReturn:
    """Ends the program."""
    print(f"benchmarks.embeddings: {message}", file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    sys.exit(main())
