"""What the interpreter of ``engine.vllm_python`` has, found out before anything slow is done. Imports no vLLM."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from axon.engine.config import EngineConfig
from axon.engine.vllm.arguments import extra_arguments
from axon.errors import Misconfigured

_LEAST_PYTHON = (3, 11)
_TIMEOUT_S = 60.0
_SETTING = "engine.vllm_python"
_PROBE = """
import importlib.util, json, sys
specs = {name: importlib.util.find_spec(name) for name in ("vllm", "msgspec")}
found = {name: (spec.submodule_search_locations or [""])[0] for name, spec in specs.items() if spec}
print(json.dumps({"python": sys.version_info[:2], "found": found}))
"""


@dataclass(frozen=True, slots=True)
class FoundVllm:
    """vLLM in an environment of its own."""

    folder: Path
    """Where its package is installed."""

    def knows(self, architecture: str) -> bool:
        """Whether its table of models names the architecture, as far as that can be read without importing it."""
        table = self.folder / "model_executor" / "models" / "registry.py"
        return table.is_file() and f'"{architecture}"' in table.read_text()


def find_vllm(config: EngineConfig) -> FoundVllm:
    """The vLLM of ``engine.vllm_python``; raises ``Misconfigured`` where there is none that can be run."""
    python = config.vllm_python
    if not python:
        raise Misconfigured(
            f"engine.kind = vllm needs {_SETTING}, the Python interpreter of an environment with vLLM: make one with "
            "`python3 -m venv /opt/vllm && /opt/vllm/bin/pip install vllm`, and set it to /opt/vllm/bin/python"
        )
    try:
        done = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise Misconfigured(
            f"{_SETTING} = {python} is no Python interpreter that can be run: {_reason(error)}"
        ) from error
    if tuple(answer["python"]) < _LEAST_PYTHON:
        has, needed = (".".join(map(str, each)) for each in (answer["python"], _LEAST_PYTHON))
        raise Misconfigured(f"{_SETTING} = {python} is Python {has}; Axon's side of it needs {needed} or newer")
    for package in ("vllm", "msgspec"):
        if package not in answer["found"]:
            raise Misconfigured(f"{_SETTING} = {python} has no {package}: `{python} -m pip install {package}`")
    return FoundVllm(Path(answer["found"]["vllm"]))


def _reason(error: Exception) -> str:
    """Why it could not be run, in a line."""
    match error:
        case subprocess.CalledProcessError():
            said = str(error.stderr).strip().splitlines()
            return said[-1] if said else f"it ended with {error.returncode}"
        case subprocess.TimeoutExpired():
            return f"it did not answer within {_TIMEOUT_S:g} s"
        case OSError():
            return error.strerror or type(error).__name__
    return "it does not answer as Python does"


def require_vllm(config: EngineConfig) -> None:
    """Raises ``Misconfigured`` where vLLM is to run a model and cannot, or its arguments cannot be read."""
    if config.kind == "vllm":
        extra_arguments(config)
        find_vllm(config)


def vllm_hint(config: EngineConfig, architecture: str) -> str:
    """Words to add to the refusal of a model that Axon's own engine does not compute: whether vLLM may."""
    if not config.vllm_python:
        return f"; vLLM may run it as a second engine, and was not asked: set {_SETTING}"
    try:
        found = find_vllm(config)
    except Misconfigured as error:
        return f"; vLLM cannot be asked whether it may: {error.message}"
    if architecture and found.knows(architecture):
        return f"; vLLM has {architecture}, so `engine: vllm` may run it: add it with --engine vllm"
    return f"; the vLLM of {_SETTING} does not know {architecture or 'it'} either"
