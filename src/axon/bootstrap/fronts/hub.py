"""``axon serve`` as several processes: fronts that speak HTTP, and this process, which owns everything else.

It runs the worker and control, and holds the embedded twins, which it serves to its fronts over a Unix socket in the
data folder. With shared services the fronts open these themselves.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from axon.bootstrap.control.control import open_control
from axon.bootstrap.fronts.messages import Start
from axon.bootstrap.fronts.parent import CLOSE_S, opened, packed
from axon.bootstrap.measuring import open_measured
from axon.bootstrap.models.model import OnProgress
from axon.bootstrap.process import counted
from axon.bootstrap.profiles import profiled
from axon.bootstrap.ready import Ready, start_code
from axon.bootstrap.services import Services
from axon.bootstrap.worker.presence import named
from axon.bootstrap.worker.spare import open_spare
from axon.bootstrap.worker.workers import open_workers, prepare_models
from axon.runtime.datafolder import locked
from axon.settings import Settings

_SOCKET = "fronts.sock"
"""Name of the socket in the data folder."""


async def serve_with_fronts(
    settings: Settings, num: int, *, on_ready: Callable[[Ready], None], on_progress: OnProgress
) -> int:
    """Runs until a signal stops it; returns the exit code."""
    with locked(settings.data_dir), named(settings) as name:
        async with opened(settings, num) as parent:  # the fronts import their packages while the model is prepared
            process, fronts, stack = parent.process, parent.fronts, parent.stack
            services = await process.opened(lambda attempt: open_measured(process, attempt, for_fronts=True), stack)
            if services is None:
                return 0
            spare = await open_spare(settings, stack)
            models = await prepare_models(process, services, on_progress, stack)
            control = await open_control(process, services, stack, stands_by=False)
            on_progress(models.stage, None)
            working = await process.unless_stopped(open_workers(process, services, models, name, stack, spare))
            if working is None:
                return 0
            hub = await _serve_ports(settings, services, stack)
            stack.push_async_callback(fronts.aclose)  # before the services that they use, however it ends
            start = Start(settings=packed(parent.settings), hub=hub, served=working.served, refuses=True)

            async def begun() -> None:
                if services.queue_forgets:
                    await control.sweeper.recover()
                began = await process.unless_stopped(fronts.start(start))
                if began is None:
                    return
                ready = replace(parent.come_up(began), engine_pids=working.engine_pids)
                on_ready(replace(ready, code=await start_code(settings, services.live.cache, process.clock)))

            async def drain() -> None:
                fronts.drain()  # they go on to listen, for their readers and probes: whoever asks for more is told
                drain_s, forgets = settings.lifecycle.drain_s, services.queue_forgets
                await working.drain(drain_s, empty_queue=forgets, hand_over=False)

            profiles = profiled(process, services, name, "server", lambda: working.engines)
            return await process.run(
                (*working.parts, *control.parts, fronts.run, parent.tell, profiles),
                started=begun,
                drain=drain,
                close=lambda: fronts.close(CLOSE_S),
                running=lambda: counted(working.num_jobs, "answer"),
            )


async def _serve_ports(settings: Settings, services: Services, stack: AsyncExitStack) -> str:
    """Serves the twins of this process; returns the path of the socket, or nothing where there are none."""
    if services.serve_to is None:
        return ""
    path = settings.data_dir / _SOCKET
    server = services.serve_to(path)
    await server.open()
    stack.push_async_callback(server.aclose)
    return str(path)
