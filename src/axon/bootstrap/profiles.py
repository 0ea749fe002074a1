"""Lets gateways profile this process and its engines, over ``live``."""

import socket
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from axon.bootstrap.process import Part, Process
from axon.bootstrap.services import Services
from axon.profiling.orders import Subject
from axon.profiling.profile import Kind
from axon.profiling.responder import Recordable, Responder, this_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from axon.worker.worker import Worker

    Engines = Callable[[], Iterable[tuple[str, Worker]]]


def profiled(process: Process, services: Services, name: str, role: str, engines: "Engines" = lambda: ()) -> Part:
    """The part that answers for this process under ``name``, and for its engines: the workers that run in it now, each
    with the name of its model."""
    own = this_process(name, role, process.profiler)
    return Responder(services.live, own, lambda: engines_of(name, engines())).run


def engines_of(name: str, engines: "Iterable[tuple[str, Worker]]") -> list[Recordable]:
    """The engines of the process ``name``. Where several versions of a model run, names tell the version too."""
    running = list(engines)
    num_of = Counter(model for model, _ in running)
    return [
        _engine_of(f"{name}/{model}" + (f"@{worker.identity.version}" if num_of[model] > 1 else ""), model, worker)
        for model, worker in running
    ]


def _engine_of(name: str, model: str, worker: "Worker") -> Recordable:
    subject = Subject(name=name, role="engine", pid=worker.engine_pid or 0, host=socket.gethostname(), model=model)
    return Recordable(subject, partial(_record, worker))


async def _record(worker: "Worker", kind: Kind, seconds: float) -> bytes:
    return await worker.profile_engine(str(kind), seconds)
