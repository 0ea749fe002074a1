"""Servers whose engine is vLLM: the real one in ``make test-vllm``, else a stand-in for it.

The fixtures have the names of the suites that run with them: a server that is called ``echo`` there repeats nothing
here.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.model import FOR_VLLM, make_model
from tests.journeys.conftest import PATIENT, Past
from tests.journeys.server import Server, running
from tests.vllm_environment import VARIABLE, engine_settings, stand_in_python


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The settings of a server with vLLM."""
    folder = tmp_path_factory.mktemp("vllm")
    python = os.environ.get(VARIABLE) or stand_in_python(folder)
    model = make_model(folder / "model", **FOR_VLLM)
    return {**engine_settings(python), "model": model, "model_name": "echo", "engine_max_model_len": 640}


@pytest.fixture
def past() -> Past:
    """The part of an answer that comes past a seq: a character is a token of the test model."""
    return lambda text, seq: text[seq:]


@pytest.fixture(scope="module")
def echo(vllm: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("served") / "data", **PATIENT, **vllm) as server:
        yield server


@pytest.fixture(scope="module")
def slow(echo: Server) -> Server:
    return echo


@pytest.fixture
def own(vllm: dict[str, object], tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to be broken at will."""
    with running(tmp_path / "data", **PATIENT, **vllm) as server:
        yield server
