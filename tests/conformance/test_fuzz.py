"""Anything the OpenAPI document allows, and much that it does not: no 5xx, no hang, no restart.

``make fuzz`` runs it with 200 examples an operation or as many as EXAMPLES says; the tests run a slice.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.clients import run
from tests.journeys.server import Server, running

_SLICE = 8
_WHOLE_S = 7000
_TIMEOUT_S = 20
"""An answer that takes longer hangs: the model's context is short here."""


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Server]:
    """A server whose model's context is short."""
    settings = {"engine_kind": "echo", "engine_max_model_len": 128, "admission_requests_per_minute": 0}
    with running(tmp_path / "data", **settings) as server:
        yield server


@pytest.mark.timeout(7200)
def test_no_request_makes_the_server_fail(fuzzed: Server, tmp_path: Path) -> None:
    examples = os.environ.get("FUZZ_EXAMPLES", str(_SLICE))
    engines = fuzzed.engine_pids()
    command = [
        *("python", "-m", "schemathesis.cli", "run", f"{fuzzed.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {fuzzed.key}"),
        *("--checks", "not_a_server_error", "--continue-on-failure"),
        *("--phases", "examples,coverage,fuzzing"),
        *("--max-examples", examples, "--request-timeout", str(_TIMEOUT_S)),
        *("--generation-with-security-parameters", "false", "--suppress-health-check", "all"),
    ]
    said = run("schemathesis", command, cwd=tmp_path, settings={}, timeout_s=_WHOLE_S)
    assert fuzzed.engine_pids() == engines, "the engine was restarted"
    with fuzzed.client() as http:
        assert http.get("/readyz").status_code == 200
    found = re.search(r"(\d+) generated", said)
    assert found, said
