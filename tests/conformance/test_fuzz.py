"""Anything the OpenAPI document allows, and much that it does not: no 5xx, no hang, no restart.

``make fuzz`` runs it with 200 examples an operation or as many as EXAMPLES says; the tests run a slice,
``make test-long`` ten times as much.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests import long
from tests.conformance import near_valid, near_valid_small, near_valid_vectors
from tests.conformance.clients import run
from tests.journeys.server import Server, running

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or round(long.share(80)))
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
_WHOLE_S = 7000
SHORT: dict[str, Any] = {"engine_kind": "echo", "engine_max_model_len": 128, "admission_requests_per_minute": 0}
_TIMEOUT_S = 20
"""An answer that takes longer hangs: the model's context is short here."""


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Server]:
    """A server whose model's context is short."""
    with running(tmp_path / "data", **SHORT) as server:
        yield server


@pytest.mark.long("fuzz")
@pytest.mark.timeout(7200)
def test_no_request_makes_the_server_fail(fuzzed: Server, tmp_path: Path) -> None:
    engines = fuzzed.engine_pids()
    fuzz(fuzzed, fuzzed.key, tmp_path, "--exclude-path-regex", "^/v1/admin/")
    assert fuzzed.engine_pids() == engines, "the engine was restarted"


@pytest.mark.long("fuzz")
@pytest.mark.timeout(7200)
def test_no_request_makes_the_admin_api_fail(fuzzed: Server, tmp_path: Path) -> None:
    admin = _admin_key(fuzzed)
    not_long = ("--exclude-path-regex", "^/v1/admin/profiles$")  # which takes as long as it is asked to
    fuzz(fuzzed, admin, tmp_path, "--include-path-regex", "^/v1/(admin/|usage)", *not_long)


@pytest.mark.long("fuzz near valid")
@pytest.mark.timeout(7200)
def test_no_request_for_a_profile_that_is_almost_right_makes_the_server_fail(fuzzed: Server) -> None:
    ask_almost(fuzzed, "/v1/admin/profiles", near_valid_small.PROFILE, key=_admin_key(fuzzed))


@pytest.mark.long("fuzz near valid")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("path", [*near_valid.OPERATIONS, *near_valid_small.OPERATIONS])
def test_no_request_that_is_almost_right_makes_the_server_fail(fuzzed: Server, path: str) -> None:
    ask_almost(fuzzed, path, (near_valid.OPERATIONS | near_valid_small.OPERATIONS)[path])


@pytest.mark.long("fuzz near valid")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "operation", near_valid_vectors.OPERATIONS, ids=lambda each: f"{each.path} of {each.size} {each.model}"
)
def test_no_request_for_vectors_that_is_almost_right_makes_the_server_fail(
    tmp_path: Path, operation: near_valid_vectors.Operation
) -> None:
    model = {f"engine_echo_{operation.model}": operation.size, "model_name": "vectors"}
    with running(tmp_path / "data", **SHORT, **model) as server:
        ask_almost(server, operation.path, operation.body)


def _admin_key(server: Server) -> str:
    return server.axon("keys", "create", "--tenant", "ops", "--scope", "admin", "--scope", "read").stdout.strip()


def ask_almost(server: Server, path: str, valid: st.SearchStrategy[Any], *, key: str = "") -> None:
    """Sends bodies that are almost right, by default with the server's own key; every refusal says why."""
    engines, found = server.engine_pids(), Counter[int]()
    headers = {"content-type": "application/json", "authorization": f"Bearer {key or server.key}"}

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=QUIET)
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        body = json.dumps(data.draw(near_valid.bodies(valid))).replace(near_valid_small.FILE, file_id)
        reply = http.post(path, content=body, headers=headers)
        found[reply.status_code] += 1
        assert reply.status_code < 500, reply.text
        if reply.status_code >= 400:
            error = reply.json()["error"]
            assert error if isinstance(error, str) else error["message"]

    with server.client() as http:
        file_id = _uploaded(http)
        for number in range(long.PART):  # a few examples may all be wrong, and in CI each run has the same
            seed(number)(ask)()
            if found[200]:
                break
        assert http.get("/readyz").status_code == 200
    print(f"{path}: {dict(found)}")
    assert found[200], "nothing was near enough"
    assert server.engine_pids() == engines, "the engine was restarted"


def _uploaded(http: httpx.Client) -> str:
    line = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"model": "echo", "prompt": "hi"}}
    form = {"purpose": (None, "batch"), "file": ("a.jsonl", json.dumps(line))}
    return str(http.post("/v1/files", files=form).raise_for_status().json()["id"])


def fuzz(server: Server, key: str, folder: Path, *which: str) -> None:
    """Sends strange requests to these operations; the server must be ready afterwards."""
    command = [
        *("python", "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", *which),
        *("--header", f"Authorization: Bearer {key}"),
        *("--checks", "not_a_server_error", "--continue-on-failure"),
        *("--phases", "examples,coverage,fuzzing" if long.whole() else "examples,fuzzing"),
        *("--max-examples", str(EXAMPLES), "--request-timeout", str(_TIMEOUT_S)),
        *("--generation-with-security-parameters", "false", "--suppress-health-check", "all"),
    ]
    said = run("schemathesis", command, cwd=folder, settings={}, timeout_s=_WHOLE_S)
    with server.client() as http:
        assert http.get("/readyz").status_code == 200
    found = re.search(r"(\d+) generated", said)
    assert found, said
