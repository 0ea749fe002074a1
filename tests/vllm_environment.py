"""Interpreters with vLLM: the real one, which ``make test-vllm`` has, or one with a stand-in for it."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

VARIABLE = "TEST_VLLM_PYTHON"
"""Names the interpreter with the real vLLM; without it, tests of that are skipped."""
STAND_IN = Path(__file__).parent / "engine" / "vllm" / "stand_in"


def vllm_python() -> str:
    """The interpreter with the real vLLM; skips the test where there is none."""
    if not (python := os.environ.get(VARIABLE, "")):
        pytest.skip("needs vLLM itself: make test-vllm")
    return python


def patience() -> float:
    """How many times as long tests wait for a process as for Axon's own engine: vLLM's imports take a minute where all
    cores are busy."""
    return 5.0 if os.environ.get(VARIABLE) else 1.0


def wrapped_python(folder: Path, python: str, *paths: Path) -> str:
    """An interpreter that finds modules in these folders too, as a program in the folder."""
    program = folder / "python-of-vllm"
    more = shlex.quote(os.pathsep.join(map(str, paths)))
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:"{more} exec {shlex.quote(python)} "$@"\n')
    program.chmod(0o755)
    return str(program)


def stand_in_python(folder: Path) -> str:
    """An interpreter with the stand-in for vLLM in its environment."""
    return wrapped_python(folder, sys.executable, STAND_IN)


def engine_settings(python: str) -> dict[str, object]:
    """How a server runs the test model with vLLM, on one thread."""
    return {
        "engine_kind": "vllm",
        "engine_vllm_python": python,
        "engine_vllm_arguments": json.dumps({"enforce_eager": True}),
        "engine_device": "cpu",
        "engine_dtype": "float32",
        "engine_threads": 1,
        "engine_kv_memory_bytes": 64 << 20,
        "worker_engine_start_timeout_s": 300.0,
    }
