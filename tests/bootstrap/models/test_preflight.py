"""What an installation without the engine says: one sentence with what installs it, before anything is done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.server import REPOSITORY

WITHOUT_ENGINE = """
import sys
for name in ("torch", "gguf", "safetensors", "numpy"):
    sys.modules[name] = None
from axon.cli import main
main(sys.argv[1:])
"""
SERVICES = (
    "--queue",
    "amqp://127.0.0.1:1",
    "--live",
    "redis://127.0.0.1:1",
    "--store",
    "postgresql://127.0.0.1:1/axon",
)
INSTALL = "axon: The engine is not installed: pip install 'axon-serving[engine]'.\n"


def said(folder: Path, *arguments: str) -> str:
    """What the command says and ends with, where the engine's packages are hidden."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    environment = {**clean, "PYTHONPATH": str(REPOSITORY / "src"), "AXON_PEPPER": "of-a-test"}
    command = [sys.executable, "-c", WITHOUT_ENGINE, *arguments, "--data-dir", str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "0", "--metrics-port", "0"),
        ("serve", "--processes", "2"),
        ("worker", *SERVICES),
        ("rank", "tcp://127.0.0.1:1"),
    ],
    ids=" ".join,
)
def test_what_runs_a_model_says_how_the_engine_is_installed(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert said(tmp_path, *arguments) == INSTALL
