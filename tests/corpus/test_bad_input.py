"""What asks too much or makes no sense is a 4xx that says why, in the shape of the client's own API; nothing grows."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import long
from tests.corpus import bad_input
from tests.corpus.bad_input import Bad
from tests.journeys.server import Server, running

EVERY = [*bad_input.every()]
NUM_REQUESTS = 2_000
MOST_KB = 24 << 10
"""Memory that the server may take on over all the requests, in kB."""
NUM_WARMING = 1_000
"""Requests after which its caches and the heaps of its threads are full."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings: dict[str, Any] = {"engine_kind": "echo", "admission_requests_per_minute": 0}
    with running(tmp_path_factory.mktemp("bad") / "data", **settings) as server:
        yield server


def send(http: httpx.Client, bad: Bad) -> httpx.Response:
    return http.post(bad.path, json={"model": "echo", **bad.body})


def check(bad: Bad, reply: httpx.Response) -> None:
    assert reply.status_code == bad.status, (bad.name, reply.status_code, reply.text[:500])
    error = reply.json()["error"]
    assert bad.words in error["message"], (bad.name, error)
    if bad.path.startswith("/v1/messages"):
        assert reply.json()["type"] == "error"
        assert error["type"] == "invalid_request_error"
        assert reply.json()["request_id"]
    else:
        assert set(error) == {"message", "type", "param", "code"}
        assert error["param"]


@pytest.mark.parametrize("path", sorted({bad.path for bad in EVERY}))
def test_each_is_refused_by_name_in_the_shape_of_its_api(server: Server, path: str) -> None:
    with server.client() as http:
        for bad in EVERY:
            if bad.path == path:
                check(bad, send(http, bad))
        assert http.get("/readyz").status_code == 200


@pytest.mark.long("bad input")
@pytest.mark.timeout(3600)
def test_two_thousand_take_no_memory_and_little_time(server: Server) -> None:
    """It prints the times of each, of which the shortest says what it costs on a machine that is busy with other things
    as well; only memory is asserted."""
    times: dict[str, list[float]] = {}
    with server.client() as http:
        for turn in range(round(long.share(NUM_WARMING))):
            send(http, EVERY[turn % len(EVERY)])
        before = memory_kb(server.pid)
        for turn in range(round(long.share(NUM_REQUESTS))):
            bad = EVERY[turn % len(EVERY)]
            started = time.perf_counter()
            reply = send(http, bad)
            times.setdefault(f"{bad.path} {bad.name}", []).append(1000 * (time.perf_counter() - started))
            check(bad, reply)
        grown = memory_kb(server.pid) - before
    slowest = sorted(times.items(), key=lambda each: -min(each[1]))[:8]
    for name, each in slowest:
        print(f"{min(each):7.1f} ms at best, {statistics.median(each):7.1f} median, {max(each):7.1f} worst: {name}")
    print(f"memory: {before} kB before, {grown} kB more after")
    if long.whole():  # a tenth does not fill the caches
        assert grown < MOST_KB


def memory_kb(pid: int) -> int:
    """The memory of a process, in kB."""
    [line] = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1])
