"""The whole server on one GPU over HTTP, against its engine alone: tokens/s at 64 streams. Random weights.

python benchmarks/server_gpu.py                        a model of 8B's shape; one JSON line last
python benchmarks/server_gpu.py --shape 0.6b --streams 256
python benchmarks/server_gpu.py --processes 1 4        with one process on the port, then with four
python benchmarks/server_gpu.py --smoke                a tiny model on the CPU: does the script run?

The model folder is written first, into memory where there is room: config, a tokenizer of as many words as the model
has, and weights that are pieces of one long row of random numbers. Then, with the same settings and lengths: the
engine's process, spoken to over its socket as a worker does; and ``axon serve`` with its twins, asked for streamed
completions by several client processes; and the same server with an engine that only echoes, which says what its own
path can carry. Each first warms up, then answers bursts (as many requests as streams, all at once) and runs (four times
as many, the next one asked for when one ends); the median of the rounds counts. Settings are the defaults, but for the
limits on one key's requests.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import httpx  # noqa: E402
import torch  # noqa: E402
from tests.journeys.server import Server, running  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402

from axon.bootstrap.fronts.sizing import num_processes  # noqa: E402
from axon.domain.sampling import Sampling  # noqa: E402
from axon.engine.config import EngineConfig  # noqa: E402
from axon.engine.protocol.messages import Add  # noqa: E402
from axon.gateway.config import GatewayConfig  # noqa: E402
from axon.runtime.cores import usable_cores  # noqa: E402
from axon.worker.child.process import EngineProcess  # noqa: E402
from benchmarks.engine_gpu import SHAPES  # noqa: E402
from benchmarks.measures.clients import Clients  # noqa: E402
from benchmarks.measures.cpu_time import ENGINE, cpu_by_part, read_processes  # noqa: E402
from benchmarks.measures.figures import Figures, median  # noqa: E402
from benchmarks.measures.load import Ask, Endpoint, figures_of, make_prompt  # noqa: E402
from benchmarks.measures.random_model import write_weights  # noqa: E402

SMOKE: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 512, "rope_theta": 10000.0,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "max_position_embeddings": 2304,
}  # fmt: skip
MODEL = "random"


def write_model(folder: Path, config: dict[str, Any], device: str) -> None:
    """A model folder as others make them, but for its numbers."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    _write_tokenizer(folder / "tokenizer.json", config["vocab_size"])
    (folder / "tokenizer_config.json").write_text("{}")
    write_weights(folder, device)


def _write_tokenizer(path: Path, vocab_size: int) -> None:
    """The 256 bytes and as many words as are left; it never joins, so that a letter is a token."""
    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {word: index for index, word in enumerate([*words, *(f"w{n}" for n in range(vocab_size - 256))])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(path))


@contextmanager
def room(num_bytes: float) -> Iterator[Path]:
    """A folder with so much room, in memory if possible."""
    places = [place for place in ("/dev/shm", tempfile.gettempdir()) if shutil.disk_usage(place).free > 1.2 * num_bytes]
    with tempfile.TemporaryDirectory(dir=places[0]) as folder:
        yield Path(folder)


class Direct:
    """The engine's process, spoken to as a worker does."""

    def __init__(self, config: EngineConfig, folder: Path) -> None:
        self._engine = EngineProcess(config, folder)
        self._number = 0
        self.num_steps = 0

    async def open(self) -> None:
        await self._engine.open(timeout_s=300)
        self._outputs = self._engine.outputs()

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def run(self, prompts: list[list[int]], num_streams: int, num_tokens: int) -> float:
        """Tokens/s; the next prompt is added when a sequence ends."""
        started = time.perf_counter()
        waiting, running_ids, count = list(prompts), set[str](), 0
        while waiting or running_ids:
            while waiting and len(running_ids) < num_streams:
                self._number += 1
                sampling = Sampling(max_tokens=num_tokens, temperature=0.0, ignore_eos=True)
                self._engine.add(Add(id=str(self._number), prompt_ids=waiting.pop(), sampling=sampling, seed=0))
                running_ids.add(str(self._number))
            self.num_steps += 1
            for emitted in (await anext(self._outputs)).emitted:
                count += 1
                if emitted.finish:
                    running_ids.discard(emitted.id)
        assert count == len(prompts) * num_tokens, "an answer is not whole"
        return count / (time.perf_counter() - started)


def make_prompts(seed: str, count: int, num_tokens: int) -> list[str]:
    """So many letters each, which are so many tokens."""
    return [make_prompt(f"{seed}/{index}", num_tokens)[:num_tokens] for index in range(count)]


def ids_of(folder: Path, prompts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return [tokenizer.encode(prompt).ids for prompt in prompts]


async def measure_direct(config: EngineConfig, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The engine alone."""
    direct = Direct(config, folder)
    started = time.perf_counter()
    try:
        await direct.open()
        start_s = time.perf_counter() - started
        rounds: dict[str, list[Figures]] = {}
        for name, number, count in loads(options):
            prompts = ids_of(folder, make_prompts(f"direct/{name}/{number}", count, options.prompt))
            before = direct.num_steps
            tokens_per_s = await direct.run(prompts, options.streams, options.tokens)
            rounds.setdefault(name, []).append({"tokens_per_s": tokens_per_s, "steps": direct.num_steps - before})
        return {"start_s": start_s, **summary(rounds)}
    finally:
        await direct.aclose()


def measure_server(server: Server, model: str, clients: Clients, options: argparse.Namespace) -> dict[str, Any]:
    """The same over HTTP."""
    port = int(re.findall(r":(\d+)", server.url)[-1])
    endpoint = Endpoint(port=port, model=model, headers=(("Authorization", f"Bearer {server.key}"),))
    rounds: dict[str, list[Figures]] = {}
    for name, number, count in loads(options):
        prompts = make_prompts(f"server/{name}/{number}", count, options.prompt)
        asks = [Ask(prompt=prompt, max_tokens=options.tokens) for prompt in prompts]
        before = seen_of(server)
        ran = clients.run(endpoint, asks, num_streams=options.streams)
        spent = {key: value - before[key] for key, value in seen_of(server).items()}
        wall_s = ran.ended - ran.started
        rounds.setdefault(name, []).append({**figures_of(ran.answers, wall_s), **spent, "wall_s": wall_s})
    return summary(rounds)


def loads(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Name, round and number of requests of each load, in their order."""
    yield "warm", 0, options.streams
    for number in range(options.rounds):
        yield "burst", number, options.streams
    for number in range(options.rounds):
        yield "run", number, 4 * options.streams


def summary(rounds: dict[str, list[Figures]]) -> dict[str, Any]:
    """The median of each figure, and the rate of every round."""
    return {
        name: {**median(each), "rounds": [figures["tokens_per_s"] for figures in each]} for name, each in rounds.items()
    }


def seen_of(server: Server) -> Figures:
    """What it has taken so far: seconds of CPU of its processes and of the clients, steps and their seconds."""
    fronts = {f"front {index}": pid for index, pid in enumerate(front_pids(server))}
    spent = cpu_by_part(read_processes(), {"clients": os.getpid(), "serve": server.pid, **fronts})
    return {
        "serve_cpu_s": spent["serve"],
        "fronts_cpu_s": sum(spent[name] for name in fronts),
        "engine_cpu_s": spent[ENGINE],
        "clients_cpu_s": spent["clients"],
        "steps": server.metric("axon_step_seconds_count"),
        "steps_s": server.metric("axon_step_seconds_sum"),
        "loop_lag_s": server.metric("axon_event_loop_lag_seconds_sum"),
    }


def front_pids(server: Server) -> list[int]:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [pid for pid in map(int, children) if b"axon.bootstrap.fronts" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def ask(server: Server) -> dict[str, Any]:
    """One plain answer, as a person would ask for it."""
    with server.client() as http:
        body = {"model": MODEL, "prompt": "Once upon a time", "max_tokens": 16, "temperature": 0, "ignore_eos": True}
        reply = http.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return {"text": answer["choices"][0]["text"][:80], "usage": answer["usage"]}


def gpu_metrics(server: Server) -> list[str]:
    text = httpx.get(server.metrics_url).text
    return [line for line in text.splitlines() if line.startswith(("axon_gpu_", "axon_batch_size", "axon_kv_usage"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="8b")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=128, help="tokens of an answer")
    parser.add_argument(
        "--processes",
        type=int,
        nargs="+",
        default=[num_processes(GatewayConfig(), usable_cores())],
        help="processes on the port; several numbers are measured one after the other",
    )
    parser.add_argument("--clients", type=int, default=max(1, usable_cores() // 4), help="processes that ask")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if not options.smoke and not torch.cuda.is_available():
        print("server_gpu needs an NVIDIA GPU, and there is none")
        return
    shape = SMOKE if options.smoke else SHAPES[options.shape]
    device: Literal["cpu", "cuda"] = "cpu" if options.smoke else "cuda"
    config = EngineConfig(device=device)
    if options.smoke:
        config = replace(config, dtype="float32", kv_memory_bytes=256 << 20)
    now = datetime.now(UTC)
    command = " ".join(["python", *sys.argv])
    print(command, flush=True)
    report: dict[str, Any] = {
        "benchmark": "server_gpu", "command": command, "date": now.isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu", "cores": os.cpu_count(),
        "shape": "smoke" if options.smoke else options.shape, "streams": options.streams, "prompt": options.prompt,
        "tokens": options.tokens, "clients": options.clients, "servers": {},
    }  # fmt: skip
    num_bytes = 20e9 if options.shape == "8b" and not options.smoke else 3e9
    with room(num_bytes) as place, Clients(options.clients) as clients:
        started = time.perf_counter()
        write_model(place / MODEL, shape, device)
        report["write_s"] = time.perf_counter() - started
        print(f"model written to {place} in {report['write_s']:.1f} s", flush=True)
        report["direct"] = asyncio.run(measure_direct(config, place / MODEL, options))
        print(f"engine alone: {report['direct']}", flush=True)
        for number in options.processes:
            found = report["servers"][str(number)] = measure_processes(number, config, place, clients, options)
            found["kept"] = {
                name: found["server"][name]["tokens_per_s"] / report["direct"][name]["tokens_per_s"]
                for name in ("burst", "run")
            }
            print(f"of the engine's tokens/s the server keeps {found['kept']}", flush=True)
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
        name = f"server-gpu-{report['shape']}-{options.streams}-{now.date()}.json"
        (options.save / name).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


def measure_processes(
    number: int, config: EngineConfig, place: Path, clients: Clients, options: argparse.Namespace
) -> dict[str, Any]:
    """The server with so many processes on its port: with the model, then with an engine that echoes."""
    found: dict[str, Any] = {}
    common = {"gateway_processes": number, "admission_concurrent": 2000, "admission_requests_per_minute": 0}
    settings = {f"engine_{name}": value for name, value in changed(config).items()}
    settings |= {"model": place / MODEL, "model_name": MODEL}
    started = time.perf_counter()
    with running(place / f"data-{number}", **settings, **common) as server:
        found["start_s"] = time.perf_counter() - started
        found["answer"] = ask(server)
        print(found["answer"], flush=True)
        found["server"] = measure_server(server, MODEL, clients, options)
        found["metrics"] = gpu_metrics(server)
    print(f"whole server, {number} on its port: {found['server']}\n{found['metrics']}", flush=True)
    with running(place / f"echo-{number}", engine_kind="echo", **common) as server:
        found["echo"] = measure_server(server, "echo", clients, options)
    print(f"the server with an engine that echoes: {found['echo']}", flush=True)
    return found


def changed(config: EngineConfig) -> dict[str, Any]:
    """The settings that are not the default's, for the server."""
    plain = EngineConfig()
    names = ("device", "dtype", "kv_memory_bytes")
    return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(plain, name)}


if __name__ == "__main__":
    main()
