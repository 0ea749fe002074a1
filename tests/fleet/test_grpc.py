"""gRPC at a fleet: a stream goes on at another gateway where it broke off, and over the death of its worker."""

import signal
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from tests.fleet.fleet import Fleet
from tests.journeys.grpc_line import Line, opened, prompt, read_on, text_of
from tests.journeys.server import wait_until
from tests.services.process import free_port

pytestmark = pytest.mark.services

ASK: dict[str, Any] = {"max_tokens": 400, "ignore_eos": True, "temperature": 1, "seed": 5}
PROMPT = "Whichever gateway has the stream, größer, 更大. " * 6


def test_a_stream_outlives_its_gateway_and_its_worker(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.01).start(gateways=1, workers=1)
    ports = [free_port(), free_port()]
    gateways = [fleet.add("gateway", grpc_enabled="true", grpc_port=port) for port in ports]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    with opened(addresses[1], fleet.key) as there:
        whole = text_of(there.generate(prompt(PROMPT, **ASK)))
        with opened(addresses[0], fleet.key) as here:
            call = here.generate(prompt(PROMPT, **ASK))
            got = [next(call) for _ in range(20)]
            gateways[0].kill()
            assert read_on(call, got) is grpc.StatusCode.UNAVAILABLE
        rest = there.resume(got[0].begun.id, got[-1].seq)
        got += [next(rest) for _ in range(20)]
        [first] = fleet.workers
        fleet.add("worker")
        first.kill()
        got += list(rest)
    assert text_of(got) == whole
    assert got[-1].end.usage.output_tokens == 400


def test_a_gateway_that_is_told_to_end_ends_its_streams_and_takes_no_new_call(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.01, lifecycle_notice_s=0.0).start(gateways=1, workers=1)
    port = free_port()
    gateway = fleet.add("gateway", grpc_enabled="true", grpc_port=port)
    with opened(f"127.0.0.1:{port}", fleet.key) as line:
        call = line.generate(prompt(PROMPT, **ASK))
        got = [next(call) for _ in range(5)]
        gateway.send(signal.SIGTERM)
        wait_until(lambda: is_refused(line), "new calls are refused")
        assert read_on(call, got) is grpc.StatusCode.OK, "it is read to its end"
    assert got[-1].end.usage.output_tokens == 400
    assert gateway.wait() == 0


def is_refused(line: Line) -> bool:
    """A call that is on its way in the moment of the signal is cancelled by grpc's library, with no word of ours."""
    code = read_on(line.generate(prompt("more", max_tokens=1)), [])
    assert code in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
    return code is grpc.StatusCode.UNAVAILABLE
