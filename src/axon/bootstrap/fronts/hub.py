"""``axon serve`` as several processes: fronts that speak HTTP, and this process, which owns everything else.

It runs the worker and control, and holds the embedded twins, which it serves to its fronts over a Unix socket in the
data folder. With shared services the fronts open these themselves.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from axon.bootstrap.control import open_control
from axon.bootstrap.fronts.fronts import Fronts
from axon.bootstrap.fronts.messages import Start
from axon.bootstrap.fronts.parent import CLOSE_S, packed, ready_of
from axon.bootstrap.gateway import Ready
from axon.bootstrap.model import OnProgress
from axon.bootstrap.presence import named
from axon.bootstrap.process import announced, bound_together, counted, started
from axon.bootstrap.services import Services, open_services
from axon.bootstrap.workers import loading, open_workers, prepare_models
from axon.runtime.datafolder import locked
from axon.settings import Settings

_SOCKET = "fronts.sock"
"""Name of the socket in the data folder."""


async def serve_with_fronts(
    settings: Settings, num: int, *, on_ready: Callable[[Ready], None], on_progress: OnProgress
) -> int:
    """Runs until a signal stops it; returns the exit code."""
    config = settings.gateway
    with (
        locked(settings.data_dir),
        named(settings) as name,
        started(settings) as process,
        bound_together(config.host, config.port, "--port", num) as listeners,
    ):
        url = f"http://{config.host}:{listeners[0].getsockname()[1]}"
        fronts = Fronts(listeners, process.clock)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(fronts.aclose)
            probing = process.probed(
                *(config.metrics_host, config.metrics_port, "--metrics-port"),
                lambda: fronts.is_ready,
                fronts.scrape,
            )
            probes_url = stack.enter_context(probing)
            await fronts.open()  # they import the web framework while the model is prepared
            services = await open_services(settings, process.clock, stack, for_fronts=True)
            models = await prepare_models(settings, on_progress)
            control = await open_control(process, services, stack, stands_by=False)
            on_progress(loading(models), None)
            working = await process.unless_stopped(open_workers(process, services, models, name, stack))
            if working is None:
                return 0
            hub = await _serve_ports(settings, services, stack)
            stack.push_async_callback(fronts.aclose)  # before the services that they use, however it ends
            start = Start(settings=packed(settings), hub=hub, served=working.served, refuses=True)

            async def begun() -> None:
                if services.queue_forgets:
                    await control.sweeper.recover()
                began = await process.unless_stopped(fronts.start(start))
                if began is None:
                    return
                process.lifecycle.ready = True
                stack.enter_context(announced(settings.data_dir / "server", url))
                ready = ready_of(settings, began, url, probes_url)
                on_ready(replace(ready, engine_pids=working.engine_pids))

            async def tell() -> None:
                await process.lifecycle.stopping.wait()
                fronts.stop()

            async def drain() -> None:
                fronts.drain()  # they go on to listen, for their readers and probes: whoever asks for more is told
                drain_s, forgets = settings.lifecycle.drain_s, services.queue_forgets
                await working.drain(drain_s, empty_queue=forgets, hand_over=False)

            return await process.run(
                (*working.parts, *control.parts, fronts.run, tell),
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
