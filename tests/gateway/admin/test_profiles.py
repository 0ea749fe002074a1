"""Profiles over HTTP: what may be asked for, by whom, and in which format it comes."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from axon.domain.tenants.key import Scope
from axon.profiling.orders import Subject
from axon.profiling.packing import pack
from axon.profiling.profile import Kind, Profile
from axon.profiling.profiler import Profiler
from axon.profiling.responder import Recordable, Responder, recorded, this_process
from axon.runtime.tasks import end
from tests.gateway.admin.office import OWN, Office, ok, refused
from tests.profiling.builders import cpu_profile, memory_profile, steps_profile

URL = "/v1/admin/profiles"
ENGINE = "w/echo"
_MADE: dict[Kind, Profile] = {Kind.CPU: cpu_profile(), Kind.MEMORY: memory_profile(), Kind.STEPS: steps_profile(3)}


async def _record(kind: Kind, seconds: float) -> bytes:
    return pack(_MADE[kind])


@pytest.fixture
def profiler() -> Profiler:
    """The worker's."""
    return Profiler()


@pytest.fixture
async def answering(office: Office, profiler: Profiler) -> AsyncIterator[None]:
    """The gateway's own process and a worker with an engine whose profiles are known."""
    engine = Recordable(Subject(name=ENGINE, role="engine", pid=7, model="echo"), _record)
    parts = (
        Responder(office.live, this_process(OWN, "gateway", Profiler())),
        Responder(office.live, this_process("w", "worker", profiler), lambda: [engine]),
    )
    tasks = [asyncio.create_task(each.run()) for each in parts]
    await asyncio.sleep(0)
    yield
    await end(*tasks)


async def taken(admin: httpx.AsyncClient, **body: Any) -> httpx.Response:
    reply = await admin.post(URL, json={"seconds": 0.1, **body})
    assert reply.status_code == 200, reply.text
    return reply


@pytest.mark.usefixtures("answering")
async def test_processes_are_listed_with_role_pid_and_model(admin: httpx.AsyncClient) -> None:
    listed = await ok(admin.get("/v1/admin/processes"))
    assert [(each["name"], each["role"], each["model"]) for each in listed["data"]] == [
        (ENGINE, "engine", "echo"),
        (OWN, "gateway", ""),
        ("w", "worker", ""),
    ]


@pytest.mark.usefixtures("answering")
async def test_without_a_process_the_one_that_answers_is_profiled_as_a_flame_graph(admin: httpx.AsyncClient) -> None:
    reply = await taken(admin, kind="cpu")
    assert reply.headers["x-axon-process"] == OWN
    assert reply.headers["content-type"] == "image/svg+xml"
    assert reply.headers["content-disposition"] == 'attachment; filename="axon-cpu.svg"'
    assert ElementTree.fromstring(reply.text).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.usefixtures("answering")
async def test_each_format_is_what_it_is_called(admin: httpx.AsyncClient) -> None:
    spin = "spin (axon/a.py:1)"
    assert spin in (await taken(admin, kind="cpu", process="echo", format="svg")).text
    assert f"{spin} 3000000" in (await taken(admin, kind="cpu", process=ENGINE, format="folded")).text
    assert f"{spin} 300\n" in (await taken(admin, kind="cpu", process=ENGINE, format="folded", weight="wall")).text
    assert (await taken(admin, kind="cpu", process="engine", format="speedscope")).json()["exporter"] == "axon"
    assert (await taken(admin, kind="cpu", process="engine", format="json")).json()["process"] == ENGINE
    memory = (await taken(admin, kind="memory", process="engine")).json()
    assert memory["lines"] == [{"place": "axon/a.py:7", "num_bytes": 2048, "blocks": 2}]


@pytest.mark.usefixtures("answering")
async def test_steps_are_those_of_the_engine_as_chromes_trace(admin: httpx.AsyncClient) -> None:
    reply = await taken(admin, kind="steps")
    assert reply.headers["x-axon-process"] == ENGINE
    assert sum(each["name"] == "step" for each in json.loads(reply.content)["traceEvents"]) == 3
    await refused(admin.post(URL, json={"kind": "steps", "process": "w"}), 400, "invalid_value", "process")


@pytest.mark.usefixtures("answering")
async def test_what_cannot_be_is_refused_by_its_field(admin: httpx.AsyncClient) -> None:
    for body, param in (
        ({}, "kind"),
        ({"kind": "heap"}, "kind"),
        ({"kind": "cpu", "seconds": 61}, "seconds"),
        ({"kind": "cpu", "seconds": 0}, "seconds"),
        ({"kind": "cpu", "format": "chrome"}, "format"),
        ({"kind": "memory", "format": "svg"}, "format"),
    ):
        reply = await admin.post(URL, json=body)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), body
    await refused(admin.post(URL, json={"kind": "cpu", "process": "x"}), 404, "process_not_found", "process")


@pytest.mark.usefixtures("answering")
async def test_a_second_profile_of_a_process_is_refused_while_the_first_runs(
    admin: httpx.AsyncClient, profiler: Profiler
) -> None:
    first = asyncio.create_task(recorded(profiler, Kind.CPU, 60.0))
    await asyncio.sleep(0)  # now it records
    await refused(admin.post(URL, json={"kind": "memory", "process": "w", "seconds": 0.1}), 409, "profile_running")
    await end(first)


async def test_only_the_scope_admin_may_profile(office: Office) -> None:
    async with office.client(await office.key("ops", Scope.INFERENCE, Scope.READ)) as other:
        await refused(other.post(URL, json={"kind": "cpu"}), 403, "insufficient_permissions")
        await refused(other.get("/v1/admin/processes"), 403, "insufficient_permissions")
