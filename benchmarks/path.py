"""What gateway, session and log add to the engine driven directly, in one run on one machine.

python -m benchmarks.path                        embedded, on the real services, and as a fleet of roles; a table, and
                                                 one JSON line last
python -m benchmarks.path --places embedded      the twins only
python -m benchmarks.path --save                 also keeps the JSON in benchmarks/results/

Three measures for each place. Time to first token: one request at a time, by turns to the server and to an engine of
the same settings in a process of its own; the difference of the middles and of the 99ths. Tokens/s at 16 streams: the
same, as a share of the engine's own. And the server with an engine that only echoes, read by 500 at once: tokens/s, and
tokens for each second of CPU that the server's process takes (of a fleet, its gateway), without the engine's and the
client's own time.
"""

import argparse
import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fleet.fleet import Fleet  # noqa: E402

from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from axon.text.tokenizer import load_tokenizer  # noqa: E402
from axon.worker.child.process import EngineProcess  # noqa: E402
from benchmarks.measures.figures import Figures, median, percentile, rounded, table  # noqa: E402
from benchmarks.measures.load import Endpoint, make_prompt, run_load  # noqa: E402
from benchmarks.measures.machine import load_average, machine  # noqa: E402
from benchmarks.measures.stage import started_services  # noqa: E402
from benchmarks.peers import engines  # noqa: E402
from benchmarks.peers.server import cpu_s, running  # noqa: E402

SEED = 0
NUM_WORDS = 32
NUM_STREAMS = 16
NUM_TOKENS = 64
NUM_REQUESTS = 60
ROUNDS = 3
NUM_READERS = 500
READER_TOKENS = 400
RAMP_S = 2.0
PLACES = ("embedded", "services", "fleet")
GOALS: dict[str, Figures] = {
    "embedded": {"added_ttft_p50_ms": 3, "added_ttft_p99_ms": 8, "kept": 0.95, "reader_tokens_per_cpu_s": 40_000},
    "services": {"added_ttft_p50_ms": 8, "added_ttft_p99_ms": 20, "kept": 0.90, "reader_tokens_per_cpu_s": 20_000},
    "fleet": {"added_ttft_p50_ms": 8, "added_ttft_p99_ms": 20, "kept": 0.90, "reader_tokens_per_cpu_s": 20_000},
}

Places = dict[str, dict[str, str]]


class Direct:
    """An engine in a process of its own, spoken to as a worker does."""

    def __init__(self, smoke: bool) -> None:
        self._folder = None if smoke else engines.MODEL_DIR
        config = EngineConfig(kind="echo") if smoke else EngineConfig(threads=engines.NUM_THREADS)
        self._engine = EngineProcess(replace(config, max_sequences=NUM_STREAMS), self._folder)
        self._tokenizer = load_tokenizer(self._folder)
        self._num_asked = 0

    async def open(self) -> None:
        await self._engine.open(timeout_s=120)
        self._outputs = self._engine.outputs()

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def run(self, prompts: Sequence[str], num_tokens: int) -> tuple[list[float], float]:
        """All prompts at once; returns when each one's first token came and how long it took in all."""
        started = time.perf_counter()
        left = {self._add(prompt, num_tokens) for prompt in prompts}
        first: dict[str, float] = {}
        while left:
            output = await anext(self._outputs)
            now = time.perf_counter()
            for emitted in output.emitted:
                first.setdefault(emitted.id, now - started)
                if emitted.finish:
                    left.discard(emitted.id)
        return list(first.values()), time.perf_counter() - started

    def _add(self, prompt: str, num_tokens: int) -> str:
        self._num_asked += 1
        sampling = Sampling(max_tokens=num_tokens, temperature=0.0, ignore_eos=True)
        ids = self._tokenizer.encode(prompt)
        self._engine.add(Add(id=str(self._num_asked), prompt_ids=ids, sampling=sampling, seed=0))
        return str(self._num_asked)


class Serving(Protocol):
    """The process that readers are connected to."""

    def own_cpu_s(self) -> float: ...


@dataclass
class Gateway:
    """A fleet's one gateway."""

    pid: int

    def own_cpu_s(self) -> float:
        return cpu_s(self.pid)


@contextmanager
def fleet(folder: Path, kind: str, place: dict[str, str], max_sequences: int) -> Iterator[tuple[Serving, Endpoint]]:
    """One process of each role."""
    urls = {name.removeprefix("AXON_").lower(): value for name, value in place.items()}
    settings = {
        **urls,
        "pepper": "0123456789abcdef0123456789abcdef",
        "namespace": f"path-{kind}",
        "engine_kind": kind,
        "engine_threads": engines.NUM_THREADS,
        "engine_max_sequences": max_sequences,
        "admission_requests_per_minute": 0,
        "admission_concurrent": 2000,
        "admission_backlog_total": 2000,
    }
    made = Fleet(folder, settings, models_dir=engines.MODEL_DIR.parent)
    try:
        members = [made.make(role).start(wait=False) for role in ("control", "worker", "gateway")]
        for member in members:
            member.wait_ready()
        gateway = made.gateways[0]
        model = "echo" if kind == "echo" else engines.MODEL_DIR.name
        yield (
            Gateway(gateway.pid),
            Endpoint(port=gateway.port, model=model, headers=(("Authorization", f"Bearer {made.key}"),)),
        )
    finally:
        made.stop()


@contextmanager
def serving(folder: Path, kind: str, place: dict[str, str], max_sequences: int) -> Iterator[tuple[Serving, Endpoint]]:
    """A server of its own in this place."""
    if folder.parent.name == "fleet":
        folder.mkdir(exist_ok=True)
        with fleet(folder, kind, place, max_sequences) as started:
            yield started
        return
    engine = engines.axon(kind=kind, dtype="auto")
    more = {
        "AXON_ENGINE_MAX_SEQUENCES": str(max_sequences),
        "AXON_ADMISSION_CONCURRENT": "2000",
        "AXON_ADMISSION_BACKLOG_TOTAL": "2000",
    }
    engine = replace(engine, environment={**engine.environment, **more, **place})
    folder.mkdir(exist_ok=True)
    with running(engine.server(folder)) as server:
        server.wait()
        yield server, engine.endpoint(server.port, folder)


async def measure_path(direct: Direct, endpoint: Endpoint, options: argparse.Namespace) -> Figures:
    """By turns: the engine alone, and the whole server with its own."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(options.requests):
        for name, into in (("server", ours), ("engine", theirs)):
            prompt = make_prompt(f"{SEED}/{name}/{number}", NUM_WORDS)
            if name == "server":
                [answer], _ = await run_load(endpoint, [prompt], num_streams=1, num_tokens=4)
                into.append(answer.ttft_s)
            else:
                [ttft_s], _ = await direct.run([prompt], 4)
                into.append(ttft_s)
    rounds: list[Figures] = []
    for number in range(options.rounds):
        prompts = [make_prompt(f"{SEED}/many/{number}/{index}", NUM_WORDS) for index in range(2 * NUM_STREAMS)]
        answers, wall_s = await run_load(
            endpoint, prompts[:NUM_STREAMS], num_streams=NUM_STREAMS, num_tokens=NUM_TOKENS
        )
        _, alone_s = await direct.run(prompts[NUM_STREAMS:], NUM_TOKENS)
        rounds.append({"server": sum(each.num_tokens for each in answers) / wall_s, "engine": 1024 / alone_s})
    both = median(rounds)
    return {
        "engine_ttft_p50_ms": 1000 * percentile(theirs, 0.5),
        "added_ttft_p50_ms": 1000 * (percentile(ours, 0.5) - percentile(theirs, 0.5)),
        "added_ttft_p99_ms": 1000 * (percentile(ours, 0.99) - percentile(theirs, 0.99)),
        "engine_tokens_per_s": both["engine"],
        "server_tokens_per_s": both["server"],
        "kept": both["server"] / both["engine"],
    }


async def measure_readers(server: Serving, endpoint: Endpoint, options: argparse.Namespace) -> Figures:
    """Many readers of an engine that costs next to nothing."""
    rounds: list[Figures] = []
    for number in range(options.rounds):
        prompts = [make_prompt(f"{SEED}/readers/{number}/{index}", 8) for index in range(options.readers)]
        before = server.own_cpu_s()
        answers, wall_s = await run_load(
            endpoint, prompts, num_streams=options.readers, num_tokens=options.reader_tokens, ramp_s=RAMP_S
        )
        num_tokens = sum(each.num_tokens for each in answers)
        rounds.append(
            {
                "reader_tokens_per_s": num_tokens / wall_s,
                "reader_tokens_per_cpu_s": num_tokens / max(server.own_cpu_s() - before, 1e-9),
            }
        )
    return median(rounds)


async def measure(place: dict[str, str], folder: Path, options: argparse.Namespace) -> Figures:
    """Every measure in one place."""
    figures: Figures = {}
    direct = Direct(options.smoke)
    await direct.open()
    try:
        with serving(folder / "server", "echo" if options.smoke else "axon", place, NUM_STREAMS) as (_, endpoint):
            await run_load(endpoint, [make_prompt("warm", NUM_WORDS)], num_streams=1, num_tokens=4)
            await direct.run([make_prompt("warm too", NUM_WORDS)], 4)
            figures |= await measure_path(direct, endpoint, options)
    finally:
        await direct.aclose()
    # The same folder: its key is the first one's, where both have one store.
    with serving(folder / "server", "echo", place, options.readers) as (server, endpoint):
        await run_load(endpoint, [make_prompt("warm", 8)] * 8, num_streams=8, num_tokens=4)
        figures |= await measure_readers(server, endpoint, options)
    return figures


@contextmanager
def places(names: Sequence[str]) -> Iterator[Places]:
    """Settings of the server for each place; the services run while the block does."""
    with ExitStack() as stack:
        found: Places = {name: {} for name in names}
        for name in found:
            if name != "embedded":  # each has services of its own: a first server makes its key
                urls = stack.enter_context(started_services()).urls
                found[name] = {"AXON_QUEUE": urls.queue, "AXON_LIVE": urls.live, "AXON_STORE": urls.store}
        yield found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--requests", type=int, default=NUM_REQUESTS)
    parser.add_argument("--readers", type=int, default=NUM_READERS)
    parser.add_argument("--reader-tokens", type=int, default=READER_TOKENS)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results/")
    parser.add_argument("--note", default="", help="a word on the circumstances, kept with the result")
    parser.add_argument("--smoke", action="store_true", help="the smallest run: no model, the twins only")
    options = parser.parse_args()
    if options.smoke:
        options.places, options.rounds, options.requests, options.readers = ["embedded"], 1, 2, 8
    return options


def main() -> None:
    options = parse()
    command = shlex.join(["python", "-m", "benchmarks.path", *sys.argv[1:]])
    started, load_before = time.perf_counter(), load_average()
    print(f"{command}\nmachine {machine()}, load average {load_before}", flush=True)
    rows: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="axon-path-") as folder, places(options.places) as found:
        for name, settings in found.items():
            place = Path(folder) / name
            place.mkdir()
            rows[name] = asyncio.run(measure(settings, place, options))
            print(table({name: rows[name]}), flush=True)
    result: dict[str, Any] = {
        "benchmark": "path",
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_average": {"before": load_before, "after": load_average()},
        "seconds": round(time.perf_counter() - started),
        "note": options.note,
        "goals": {name: GOALS[name] for name in rows},
        "places": rounded(rows),
    }
    if options.save:
        path = ROOT / "benchmarks" / "results" / f"path-{datetime.now(UTC):%Y-%m-%d}.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
