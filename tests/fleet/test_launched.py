"""Control runs the workers: they come with a deployment, come again when they die, and outlive control."""

import json
import os
import signal
from collections.abc import Callable

import pytest

from axon.adapters.launch.system import ProcessId, is_alive
from tests.fleet import launched
from tests.fleet.fleet import Fleet
from tests.fleet.versions import MODEL, Registry, register_echo, sent
from tests.journeys.server import wait_until

ONE, TWO = "small#-0", "small#-1"
TWO_WORKERS = {"min_replicas": 2, "max_replicas": 2}


def ask(fleet: Fleet) -> str:
    with fleet.client(fleet.gateways[0].url) as http:
        body = {"model": MODEL, "messages": [{"role": "user", "content": "say it"}], "temperature": 0}
        return str(sent(http.post("/v1/chat/completions", json=body))["choices"][0]["message"]["content"])


def ready(registry: Registry, count: int) -> bool:
    """Whether control reports as many ready workers."""
    answer = registry.http.get("/v1/admin/fleet")
    states = [each["state"] for each in answer.json().get("replicas", [])]
    return states == ["ready"] * count


@pytest.mark.services
def test_control_runs_the_workers_of_a_deployment_and_finds_them_again_after_its_own_death(
    fresh: Callable[..., Fleet],
) -> None:
    fleet = fresh(control_launcher="process", worker_announce_s=0.2, control_look_s=0.2)
    fleet.start(gateways=1, workers=0, controls=1, meanwhile=lambda fleet: register_echo(fleet, MODEL, **TWO_WORKERS))
    [control] = fleet.controls
    with Registry(fleet) as registry:
        wait_until(lambda: ready(registry, 2), "two workers are ready", 120)
        assert "say it" in ask(fleet)
        first = launched.watched(fleet.data_dir)
        assert sorted(first) == [ONE, TWO]
        assert "2 wanted" in registry.http.get("/v1/admin/fleet").json()["decisions"][-1]["reason"]

        elsewhere = fleet.folder / "another-machine"
        stranger = fleet.add("control", data_dir=elsewhere)
        control.kill()
        wait_until(lambda: stranger.metric("axon_leads") == 1, "a control of another machine leads")
        assert "say it" in ask(fleet)
        wait_until(lambda: "fleet.launched_elsewhere" in stranger.log, "it knows that it is not to launch")
        assert not launched.watched(elsewhere)
        _kill(first[ONE])
        control.start()
        wait_until(
            lambda: ready(registry, 2) and launched.processes(fleet.data_dir).keys() == {ONE, TWO}, "both run", 120
        )
        again = launched.watched(fleet.data_dir)
        assert again[TWO] == first[TWO]
        assert again[ONE] != first[ONE]
        shown = {each["id"]: each for each in registry.http.get("/v1/admin/fleet").json()["replicas"]}
        assert (shown[ONE]["restarts"], shown[TWO]["restarts"]) == (1, 0)
        assert "small#-0" in fleet.axon("fleet", "status")
        assert json.loads(fleet.axon("fleet", "status", "--json"))["launcher"] == "process"

        assert (stranger.metric("axon_launches"), control.metric("axon_launches")) == (0, 1)
        assert not launched.watched(elsewhere)
        registry.change(min_replicas=1, max_replicas=1)
        wait_until(lambda: ready(registry, 1) and not is_alive(again[TWO]), "one has drained", 60)
        assert launched.processes(fleet.data_dir).keys() == {ONE}
        assert "say it" in ask(fleet)


def _kill(process: ProcessId) -> None:
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(process), "it is dead")
