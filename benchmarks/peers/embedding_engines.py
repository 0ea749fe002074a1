"""The servers of embeddings that Axon is compared with: how each is installed and started. Measures nothing.

Each has a virtual environment of its own under .peers/, two threads, and the same weights: all-MiniLM-L6-v2.

python -m benchmarks.peers.embedding_engines        installs them
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.engine.encoder.minilm import minilm  # noqa: E402

from benchmarks.peers.bert_gguf import write_bert  # noqa: E402
from benchmarks.peers.engines import NUM_THREADS, PEERS, Engine  # noqa: E402

FOLDER = PEERS / "embeddings"
MANIFEST = FOLDER / "peers.json"
PACKAGES = {
    "sentence-transformers": ("torch==2.13.0", "sentence-transformers==6.2.0", "onnx==1.23.0", "onnxruntime==1.29.0"),
    "llama.cpp": ("xllamacpp==2026.10.11549",),
}
"""What each environment has. ONNX Runtime has the environment of sentence-transformers, whose model it exports."""
GGUF_KINDS = ("f32", "q8_0")
AXON_DTYPES = ("float32", "int8")
SERVER = str(ROOT / "benchmarks" / "peers" / "embedding_server.py")


class NotInstalled(Exception):
    """A peer cannot be had here."""


def axon(dtype: str, threads: int = NUM_THREADS) -> Engine:
    """The whole server, as ``axon serve`` starts it."""
    return _axon(f"axon-{dtype}", model=minilm(), engine_dtype=dtype, engine_threads=threads)


def axon_echo() -> Engine:
    """The server without a model: vectors of hashes."""
    return _axon("axon-echo", engine_kind="echo", engine_echo_dimensions=8, engine_max_model_len=2048)


def _axon(name: str, **settings: object) -> Engine:
    own = {
        "data_dir": f"{{folder}}/{name}",
        "model_name": "minilm",
        "gateway_port": "{port}",
        "gateway_metrics_port": "{metrics_port}",
        "admission_requests_per_minute": 0,
        "log_level": "warning",
        **settings,
    }
    return Engine(
        name=name,
        version=name.removeprefix("axon-"),
        command=(sys.executable, "-m", "axon", "serve"),
        environment={
            "PYTHONPATH": str(ROOT / "src"),
            **{f"AXON_{key.upper()}": str(value) for key, value in own.items()},
        },
        model="minilm",
        key_file=f"{{folder}}/{name}/dev-key",
        can_pause=False,
    )


def peers(threads: int = NUM_THREADS) -> list[Engine]:
    """All peers, as they are installed; raises NotInstalled where one is missing."""
    if not MANIFEST.exists():
        raise NotInstalled("the peers are not installed: python -m benchmarks.peers.embedding_engines")
    versions: dict[str, str] = json.loads(MANIFEST.read_text())
    python = str(FOLDER / "sentence-transformers" / "bin" / "python")
    asked = ("--port", "{port}", "--model", str(minilm()), "--threads", str(threads))
    environment = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(threads)}
    found = [
        Engine(
            name="sentence-transformers",
            version=f"{versions['sentence-transformers']}, torch {versions['torch']}, our thin server",
            command=(python, SERVER, *asked, "--backend", "sentence-transformers"),
            environment=environment,
            model="minilm",
        )
    ]
    for kind in AXON_DTYPES:
        weights = ("--weights", str(FOLDER / "onnx" / f"{kind}.onnx"))
        found.append(
            Engine(
                name=f"onnxruntime-{kind}",
                version=f"{versions['onnxruntime']}, our thin server",
                command=(python, SERVER, *asked, "--backend", "onnxruntime", *weights),
                environment=environment,
                model="minilm",
            )
        )
    for kind in GGUF_KINDS:
        found.append(
            Engine(
                name=f"llama.cpp-{kind}",
                version=f"xllamacpp {versions['xllamacpp']}, its own server",
                command=(
                    str(FOLDER / "llama.cpp" / "bin" / "python"),
                    str(ROOT / "benchmarks" / "peers" / "xllamacpp_server.py"),
                    *("--port", "{port}", "--model", str(FOLDER / f"minilm-{kind}.gguf"), "--threads", str(threads)),
                    *("--streams", "32", "--context", "512", "--embeddings"),
                ),
                model="minilm",
            )
        )
    return found


def install() -> None:
    """Installs all of them; what is there already is kept. Raises NotInstalled."""
    versions: dict[str, str] = {}
    for name, packages in PACKAGES.items():
        folder = FOLDER / name
        if not (folder / "bin" / "python").exists():
            _run([sys.executable, "-m", "venv", str(folder)])
        python = str(folder / "bin" / "python")
        _run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages])
        versions |= dict(package.split("==") for package in packages)
    python = str(FOLDER / "sentence-transformers" / "bin" / "python")
    if not (FOLDER / "onnx" / "int8.onnx").exists():
        export = str(ROOT / "benchmarks" / "peers" / "onnx_export.py")
        _run([python, export, str(minilm()), str(FOLDER / "onnx")])
    for kind in GGUF_KINDS:
        if not (path := FOLDER / f"minilm-{kind}.gguf").exists():
            write_bert(minilm(), kind, path)
    MANIFEST.write_text(json.dumps(versions, indent=2) + "\n")


def _run(command: Sequence[str]) -> None:
    print("  " + " ".join(command).replace(f"{ROOT}/", ""), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"{' '.join(command[:4])} … failed:\n{done.stdout[-2000:]}")


if __name__ == "__main__":
    try:
        install()
    except NotInstalled as error:
        sys.exit(str(error))
