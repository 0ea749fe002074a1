"""Routes of /v1/admin/processes and /v1/admin/profiles: what a process computes, allocates and steps through."""

import asyncio
from collections.abc import Coroutine
from dataclasses import asdict
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from axon.errors import InvalidInput
from axon.gateway.admin.bodies import AdminWire, Name, admin_of, note, read
from axon.gateway.http.errors import ClientLeft
from axon.gateway.http.schema import body_of_kind
from axon.gateway.turn.sse import until_disconnected
from axon.profiling.asking import chosen
from axon.profiling.flame_graph import flame_graph
from axon.profiling.formats import chrome_trace, folded, speedscope
from axon.profiling.profile import MAX_SECONDS, MIN_SECONDS, CpuProfile, Kind, Profile, StepsProfile
from axon.profiling.weights import Weight

router = APIRouter(tags=["admin"], prefix="/v1/admin")

_FORMATS = {Kind.CPU: ("svg", "folded", "speedscope", "json"), Kind.MEMORY: ("json",), Kind.STEPS: ("chrome", "json")}
"""The formats of each kind, the default first."""
_JSON = "application/json"
_FILES = {"svg": ("image/svg+xml", "svg"), "folded": ("text/plain; charset=utf-8", "txt")}
_ENGINE = "engine"


class NewProfile(AdminWire):
    """Body of POST /v1/admin/profiles."""

    kind: Literal["cpu", "memory", "steps"]
    """``cpu``: stacks of all threads, sampled. ``memory``: the lines of Python that allocated what is still held.
    ``steps``: the steps of an engine with their phases."""
    process: Name = ""
    """The process's name, the start of its name, its role or its model, if only one process has it. By default the
    process that answers this request; for ``steps`` the engine."""
    seconds: Annotated[float, Field(ge=MIN_SECONDS, le=MAX_SECONDS)] = 10.0
    """How long to record."""
    format: Literal["svg", "folded", "speedscope", "chrome", "json"] | None = None
    """``svg`` (a flame graph), ``folded`` or ``speedscope`` for ``cpu``; ``chrome`` (trace events, for
    chrome://tracing or Perfetto) for ``steps``; ``json`` for any. By default the first of its kind."""
    weight: Literal["cpu", "wall"] = "cpu"
    """What a stack of ``cpu`` is measured by: its processor time, or all time, waiting included."""


@router.get("/processes", summary="List processes")
async def processes(request: Request) -> dict[str, Any]:
    """Lists the processes that answer now, with role, pid, host, and the model of an engine: those that can be
    profiled."""
    found = await admin_of(request).profiles.subjects()
    return {"object": "list", "data": [{"object": "process", **asdict(each)} for each in found]}


@router.post("/profiles", openapi_extra=body_of_kind(NewProfile), summary="Profile a process")
async def create(request: Request) -> Response:
    """Records a profile of one process for some seconds and returns it as a file. It holds places in the code alone:
    no argument, prompt or key. 409 while another profile of the process is being recorded, 404 if no such process
    answers."""
    ask, profiles = await read(NewProfile, request), admin_of(request).profiles
    kind = Kind(ask.kind)
    shape = ask.format or _FORMATS[kind][0]
    if shape not in _FORMATS[kind]:
        raise InvalidInput(f"A profile of {kind} comes as {' or '.join(_FORMATS[kind])}.", param="format")
    word = ask.process or (_ENGINE if kind is Kind.STEPS else "")
    name = chosen(await profiles.subjects(), word).name if word else profiles.own
    note(request, "admin.profiled", process=name, profile=str(kind), record_s=ask.seconds)
    profile = await _recorded(request, profiles.record(name, kind, ask.seconds))
    body = await asyncio.to_thread(written, profile, shape, Weight(ask.weight))
    media, suffix = _FILES.get(shape, (_JSON, "json"))
    # Never shown in place: a drawing with a script has no business among the pages of this origin.
    named = {"content-disposition": f'attachment; filename="axon-{kind}.{suffix}"', "x-axon-process": name}
    return Response(body, media_type=media, headers=named)


async def _recorded(request: Request, recording: Coroutine[Any, Any, Profile]) -> Profile:
    """The profile; a client that leaves ends its recording, which would refuse all others until it is over."""
    found: list[Profile] = []

    async def record() -> None:
        found.append(await recording)

    await until_disconnected(record(), request.receive)
    if not found:
        raise ClientLeft
    return found[0]


def written(profile: Profile, shape: str, weight: Weight) -> bytes:
    """The profile in one of its formats."""
    if shape == "json":
        return msgspec.json.encode(profile)
    if isinstance(profile, StepsProfile):
        return chrome_trace(profile)
    assert isinstance(profile, CpuProfile), "memory has one format"
    if shape == "speedscope":
        return speedscope(profile, weight=weight)
    return (flame_graph if shape == "svg" else folded)(profile, weight=weight).encode()
