"""A chat model and an embedding model on the same cores: what each does to the other's answers.

python -m benchmarks.core_sharing                     a table, and one JSON line last
python -m benchmarks.core_sharing --save              also keeps the JSON in benchmarks/results/

One ``axon serve`` with both models, once with time slices for engines (``engine.share_cores``), once without. A chat
stream's time between tokens, alone and beside a flood of embeddings; a lone input's p50, alone and beside chat streams.
The ratios are those of one run.
"""

import argparse
import asyncio
import signal
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.engine.encoder.minilm import minilm  # noqa: E402

from benchmarks.measures.embedding_load import KINDS, LONG_WORDS, SHORT_WORDS, Connection, Kind, run_kind  # noqa: E402
from benchmarks.measures.figures import Figures, median, rounded, shown  # noqa: E402
from benchmarks.measures.load import Endpoint, make_prompt, run_load  # noqa: E402
from benchmarks.measures.report import Report, add_report_options  # noqa: E402
from benchmarks.peers.engines import MODELS, NUM_THREADS, Engine  # noqa: E402
from benchmarks.peers.server import running  # noqa: E402

CHAT, EMBEDDINGS = "smollm2-135m-instruct", "minilm"
ROUNDS = 3
GOAL = 2.0
FLOOD_REQUESTS = 32
NUM_TOKENS = 96
_CHAT_WORDS = 32


class Asking:
    """The server's two models, asked."""

    def __init__(self, chat: Endpoint, embeddings: Endpoint) -> None:
        self._chat, self._embeddings = chat, embeddings
        self._number = 0

    async def tpot_ms(self, streams: int = 1) -> float:
        """A chat stream's mean milliseconds between two tokens, the median of the streams."""
        prompts = [self._prompt(_CHAT_WORDS) for _ in range(streams)]
        answers, _ = await run_load(self._chat, prompts, num_streams=streams, num_tokens=NUM_TOKENS)
        return 1000 * statistics.median(each.tpot_s for each in answers)

    async def p50_ms(self, kind: Kind, share: float = 1.0) -> float:
        """A lone input's."""
        self._number += 1
        return (await run_kind(self._embeddings, kind, self._number, share))["p50_ms"]

    async def flood(self, num_words: int, stop: asyncio.Event) -> None:
        """Asks for vectors, many requests at once, until it is told to stop."""

        async def loop() -> None:
            connection = Connection(self._embeddings)
            await connection.open()
            try:
                while not stop.is_set():
                    await connection.ask([self._prompt(num_words)])
            finally:
                await connection.aclose()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(FLOOD_REQUESTS):
                tasks.create_task(loop())

    async def chats(self, streams: int, stop: asyncio.Event) -> None:
        """Streams one answer after the other until it is told to stop, and the last ones to their ends: a stream whose
        reader has gone would run on for a while, beside what is measured next."""
        while not stop.is_set():
            prompts = [self._prompt(_CHAT_WORDS) for _ in range(streams)]
            await run_load(self._chat, prompts, num_streams=streams, num_tokens=4 * NUM_TOKENS)

    def _prompt(self, num_words: int) -> str:
        self._number += 1
        return make_prompt(f"sharing/{self._number}", num_words)


async def beside(load: Callable[[asyncio.Event], Awaitable[None]], measure: Callable[[], Awaitable[float]]) -> float:
    """What is measured while the load runs; returns when the load has ended too."""
    stop = asyncio.Event()
    task = asyncio.ensure_future(load(stop))
    try:
        await asyncio.sleep(0.5)
        found = await measure()
        stop.set()
        await task
    finally:
        task.cancel()
    return found


async def one_round(asking: Asking) -> Figures:
    """All measures, each beside its own quiet one."""
    short, long = (next(kind for kind in KINDS if kind.name == name) for name in ("one short", "one long"))
    found: Figures = {"chat alone: ms between tokens": await asking.tpot_ms()}
    for words, name in ((SHORT_WORDS, "short"), (LONG_WORDS, "long")):
        found[f"chat beside a flood, {name}"] = await beside(partial(asking.flood, words), asking.tpot_ms)
    for kind in (short, long):
        found[f"{kind.name} input alone: p50 ms"] = await asking.p50_ms(kind)
        for streams in (1, 4):
            measured = await beside(partial(asking.chats, streams), partial(asking.p50_ms, kind))
            found[f"{kind.name} input beside {streams} chats"] = measured
    return found


def ratios(medians: Figures) -> Figures:
    """Each figure beside a load over its quiet one."""
    found: Figures = {}
    for name, value in medians.items():
        if "alone" not in name:
            start = "chat alone" if name.startswith("chat") else name.split(" input ")[0] + " input alone"
            quiet = next(other for key, other in medians.items() if key.startswith(start))
            found[name] = value / quiet
    return found


def axon(*, share_cores: bool, dtype: str) -> Engine:
    """One server with both models; ``dtype`` is the embedding model's."""
    name = "axon-slices" if share_cores else "axon-free"
    settings = {
        "data_dir": f"{{folder}}/{name}",
        "models_dir": MODELS,
        "models": f"{CHAT}=default,{EMBEDDINGS}={minilm()}",
        "gateway_port": "{port}",
        "gateway_metrics_port": "{metrics_port}",
        "admission_requests_per_minute": 0,
        "engine_threads": NUM_THREADS,
        "engine_dtype": dtype,
        "engine_share_cores": share_cores,
        "log_level": "warning",
    }
    return Engine(
        name=name,
        version=dtype,
        command=(sys.executable, "-m", "axon", "serve"),
        environment={
            "PYTHONPATH": str(ROOT / "src"),
            **{f"AXON_{key.upper()}": str(value) for key, value in settings.items()},
        },
        key_file=f"{{folder}}/{name}/dev-key",
        can_pause=False,
    )


@contextmanager
def asked(engine: Engine, folder: Path) -> Iterator[Asking]:
    """The server for the length of a block."""
    with running(engine.server(folder)) as server:
        server.wait()
        endpoint = engine.endpoint(server.port, folder)
        models = (Endpoint(port=server.port, model=name, headers=endpoint.headers) for name in (CHAT, EMBEDDINGS))
        yield Asking(*models)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--dtype", default="auto", help="of both models")
    parser.add_argument("--only", choices=("slices", "free"), help="one of the two servers")
    add_report_options(parser)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report("core_sharing", options)
    medians: dict[str, Figures] = {}
    for share_cores in (True, False):
        engine = axon(share_cores=share_cores, dtype=options.dtype)
        if options.only and not engine.name.endswith(options.only):
            continue
        with tempfile.TemporaryDirectory(prefix="axon-bench-") as folder, asked(engine, Path(folder)) as asking:
            asyncio.run(asking.tpot_ms())  # warms up
            rounds: list[Figures] = []
            for number in range(options.rounds):
                rounds.append(asyncio.run(one_round(asking)))
                told_round = ", ".join(f"{name} {shown(value)}" for name, value in rounds[-1].items())
                print(f"  {engine.name}, round {number + 1}: {told_round}", flush=True)
        medians[engine.name] = median(rounds)
    told = {name: ratios(figures) for name, figures in medians.items()}
    print("| measure | " + " | ".join(medians) + " |\n|---|" + "---|" * len(medians))
    for key in next(iter(medians.values())):
        cells = (
            f"{shown(figures[key])} ms" + (f" ({told[name][key]:.2f}×)" if key in told[name] else "")
            for name, figures in medians.items()
        )
        print(f"| {key} | {' | '.join(cells)} |")
    report.end(
        {
            "goal": GOAL,
            "medians": rounded(medians),
            "ratios": rounded(told),
        }
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
