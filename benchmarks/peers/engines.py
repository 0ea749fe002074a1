"""The engines as servers: command line, environment, model. Installs nothing and measures nothing.

Every engine has two threads for its arithmetic unless told otherwise, room for sixteen streams, the same weights, and
flags meant for this load; which of them were compared with others stands in docs/performance.md.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.services.process import free_port

from benchmarks.measures.comparison import AXON
from benchmarks.measures.load import Endpoint
from benchmarks.peers.builds import Speculation
from benchmarks.peers.server import Server

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"
MANIFEST = PEERS / "peers.json"
MODELS = ROOT / ".cache" / "models"
MODEL_DIR = MODELS / "smollm2-135m-instruct"
NUM_THREADS = 2
MAX_STREAMS = 16
CONTEXT = 1024
"""Tokens of a stream, prompt and answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How one engine is started; ``{port}``, ``{metrics_port}`` and ``{folder}`` stand for what is known only then."""

    name: str
    version: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    model: str = "smollm2"
    key_file: str = ""
    can_pause: bool = True
    """Whether it may be stopped while another is measured; Axon's leases would run out."""
    takes_chats: bool = False
    """Whether chats go to it as messages; to the others they go as the prompt that its template makes of them."""
    speculates: bool = False

    def server(self, folder: Path) -> Server:
        """Its server on a free port, with a folder for what it writes."""
        port, metrics_port = free_port(), free_port()
        known = {"port": port, "metrics_port": metrics_port, "folder": folder}
        command = [part.format(**known) for part in self.command]
        own = {name: value.format(**known) for name, value in self.environment.items()}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
        return Server(command, {**clean, **own}, port, folder / f"{self.name}.log", metrics_port)

    def endpoint(self, port: int, folder: Path) -> Endpoint:
        """Where its completions are asked for, once it serves."""
        headers: tuple[tuple[str, str], ...] = ()
        if self.key_file:
            key = Path(self.key_file.format(folder=folder)).read_text().strip()
            headers = (("Authorization", f"Bearer {key}"),)
        return Endpoint(port=port, model=self.model, headers=headers, takes_chats=self.takes_chats)

    @property
    def told(self) -> str:
        """The command line for people, without paths of this machine."""
        own = [f"{name}={value}" for name, value in sorted(self.environment.items()) if "PATH" not in name]
        told = " ".join([*own, *self.command]).replace(sys.executable, "python")
        told = told.replace(f"{ROOT}/", "").replace(f"{Path.home()}/", "~/").replace("{folder}/", "")
        return told.replace("{port}", "N").replace("{metrics_port}", "M")


def axon(
    kind: str = "axon", dtype: str = "int8", threads: int = NUM_THREADS, *, speculate: bool = True, name: str = AXON
) -> Engine:
    """The whole server, as ``axon serve`` starts it."""
    settings: dict[str, object] = {
        "data_dir": f"{{folder}}/{name}",
        "models_dir": MODELS,
        "model_name": "smollm2-135m-instruct",
        "gateway_port": "{port}",
        "gateway_metrics_port": "{metrics_port}",
        "admission_requests_per_minute": 0,
        "engine_kind": kind,
        "engine_dtype": dtype,
        "engine_threads": threads,
        "engine_max_sequences": MAX_STREAMS,
        "engine_speculate": speculate,
        "log_level": "warning",
    }
    own = {f"AXON_{name.upper()}": str(value) for name, value in settings.items()}
    return Engine(
        name=name,
        version=f"{kind} {dtype}" if kind == "axon" else kind,
        command=(sys.executable, "-m", "axon", "serve"),
        environment={"PYTHONPATH": str(ROOT / "src"), **own},
        model="smollm2-135m-instruct",
        key_file=f"{{folder}}/{name}/dev-key",
        can_pause=False,
        takes_chats=True,
        speculates=speculate and kind == "axon",
    )


def echo_peer() -> Engine:
    """The HTTP server that OpenVINO runs behind, without OpenVINO: a stand-in for the smallest run."""
    command = (sys.executable, str(ROOT / "benchmarks" / "peers" / "openvino_server.py"), "--port", "{port}", "--echo")
    return Engine(name="echo-peer", version="1", command=command)


def llama(weights: str, manifest: dict[str, Any], threads: int, speculation: Speculation | None = None) -> Engine:
    """llama.cpp's own server."""
    return Engine(
        name=f"llama.cpp-{weights}" + (f"-{speculation.name}" if speculation else ""),
        version=f"{manifest['version']}, built {manifest['built']}" if "built" in manifest else manifest["version"],
        command=(
            str(PEERS / "llama.cpp" / manifest.get("folder", "build") / "bin" / "llama-server"),
            *("--model", str(PEERS / "weights" / f"{weights}.gguf"), "--alias", "smollm2"),
            *("--host", "127.0.0.1", "--port", "{port}", "--threads", str(threads)),
            *("--parallel", str(MAX_STREAMS), "--ctx-size", str(MAX_STREAMS * CONTEXT), "--cont-batching"),
            *("--threads-http", str(MAX_STREAMS + 2), "--flash-attn", "on", "--no-webui", "--log-disable"),
            *(speculation.flags if speculation else ()),
        ),
        speculates=speculation is not None,
    )


def _llamas(manifest: dict[str, Any], threads: int) -> list[Engine]:
    """Once for each form of the weights, and once more with its own speculation where the build has one."""
    ways: list[Speculation | None] = [None]
    if noted := manifest.get("speculation"):
        ways.append(Speculation(noted["name"], tuple(noted["flags"])))
    return [llama(weights, manifest, threads, way) for weights in manifest["weights"] for way in ways]


def _openvino(manifest: dict[str, Any], threads: int) -> Engine:
    return Engine(
        name="openvino",
        version=manifest["version"],
        command=(
            str(PEERS / "openvino" / "bin" / "python"),
            *(str(ROOT / "benchmarks" / "peers" / "openvino_server.py"), "--port", "{port}"),
            *("--model", str(PEERS / "weights" / f"{manifest['weights']}.gguf"), "--threads", str(threads)),
            *("--backend", manifest["backend"]),
        ),
    )


def _vllm(manifest: dict[str, Any], threads: int) -> Engine:
    return Engine(
        name="vllm",
        version=manifest["version"],
        command=(
            *(str(PEERS / "vllm" / "bin" / "vllm"), "serve", str(MODEL_DIR), "--served-model-name", "smollm2"),
            *("--host", "127.0.0.1", "--port", "{port}", "--dtype", manifest["dtype"]),
            *("--max-model-len", str(CONTEXT), "--max-num-seqs", str(MAX_STREAMS), "--no-enable-prefix-caching"),
        ),
        environment={
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(threads),
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CACHE_ROOT": str(PEERS / "vllm" / "cache"),
            "HF_HUB_OFFLINE": "1",
        },
    )


_PEERS: dict[str, Callable[[dict[str, Any], int], list[Engine]]] = {
    "llama.cpp": _llamas,
    "openvino": lambda manifest, threads: [_openvino(manifest, threads)],
    "vllm": lambda manifest, threads: [_vllm(manifest, threads)],
}


FAMILIES = tuple(_PEERS)


def read_manifest(path: Path = MANIFEST) -> dict[str, dict[str, Any]]:
    """What ``make bench-peers`` noted of each peer: its version, or why it is missing."""
    return json.loads(path.read_text()) if path.exists() else {}


def installed_peers(manifest: Mapping[str, dict[str, Any]], threads: int = NUM_THREADS) -> list[Engine]:
    """The peers that can be started here."""
    return [
        engine
        for name, noted in manifest.items()
        if "missing" not in noted and name in _PEERS
        for engine in _PEERS[name](noted, threads)
    ]


def missing_peers(manifest: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Why the others cannot."""
    return {name: noted["missing"] for name, noted in manifest.items() if "missing" in noted}


def notes(manifest: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """What those that can be started lack here."""
    return {name: noted["note"] for name, noted in manifest.items() if "note" in noted}
