"""What holds answers of vLLM is killed in the middle of them: the engine here, and in a fleet an engine, a worker and a
gateway."""

import os
import signal
from pathlib import Path

import pytest

from tests.faults.conftest import seed, stages
from tests.faults.every import FAULTS
from tests.faults.fault import Fault
from tests.faults.stage import Stages
from tests.faults.test_faults import check
from tests.journeys.server import Server
from tests.journeys.sse import pieces, text_of
from tests.journeys.test_resume import ask
from tests.vllm_environment import vllm_python

__all__ = ["seed", "stages"]
KILLED = (
    "worker killed in prefill",
    "worker killed in decode",
    "engine killed in a fleet",
    "gateway killed while accepting",
    "worker killed before the ack",
    "gateway killed under 50 streams",
)


def test_the_same_http_stream_goes_on_after_the_engine_was_killed(own: Server) -> None:
    with own.client() as http:
        undisturbed = http.post("/v1/completions", json=ask(stream=False)).json()["choices"][0]["text"]
        got = []
        with http.stream("POST", "/v1/completions", json=ask()) as reply:
            for piece in pieces(reply.iter_lines()):
                got.append(piece)
                if len(got) == 30:
                    [engine] = own.engine_pids()
                    os.kill(engine, signal.SIGKILL)
    assert got[-1].finish == "length"
    assert text_of(got) == undisturbed, "greedy answers of the test model leave no doubt about the next token"
    assert own.metric("axon_failovers_total") == 1


@pytest.mark.services
@pytest.mark.vllm
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.name in KILLED], ids=lambda fault: fault.name)
def test_every_accepted_turn_ends_once_and_as_undisturbed(fault: Fault, stages: Stages, tmp_path: Path) -> None:
    vllm_python()
    check(fault, stages, tmp_path)
