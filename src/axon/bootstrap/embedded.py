"""``axon serve``: gateway, worker and control in one process, which opens and closes all of them."""

import asyncio
import importlib
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from axon.bootstrap.control.control import open_control
from axon.bootstrap.fronts.sizing import num_processes
from axon.bootstrap.gateway.gateway import Answering, open_gateway
from axon.bootstrap.gateway.grpc import grpc_reserved
from axon.bootstrap.measuring import open_measured
from axon.bootstrap.models.model import OnProgress
from axon.bootstrap.models.preflight import require_device, require_engine
from axon.bootstrap.process import announced, bound, counted, started
from axon.bootstrap.profiles import profiled
from axon.bootstrap.ready import Ready, start_code
from axon.bootstrap.services import require_pool
from axon.bootstrap.worker.presence import named
from axon.bootstrap.worker.spare import open_spare
from axon.bootstrap.worker.workers import open_workers, prepare_models
from axon.runtime.cores import usable_cores
from axon.runtime.datafolder import locked
from axon.settings import Settings


async def serve(settings: Settings, *, on_ready: Callable[[Ready], None], on_progress: OnProgress) -> int:
    """Runs until a signal stops it; returns the exit code."""
    config = settings.gateway
    require_pool(settings)
    require_engine(each.engine for each in settings.each_model())
    require_device(settings.engine)
    if (num := num_processes(config, usable_cores())) > 1:
        from axon.bootstrap.fronts.hub import serve_with_fronts

        return await serve_with_fronts(settings, num, on_ready=on_ready, on_progress=on_progress)
    answering: Answering | None = None
    with (
        locked(settings.data_dir),
        named(settings) as name,
        grpc_reserved(settings) as settings,
        started(settings) as process,
        bound(config.host, config.port, "--port") as listener,
        process.probed(
            *(config.metrics_host, config.metrics_port, "--metrics-port"),
            lambda: answering is not None and answering.offers.are_known,
        ) as probes_url,
    ):
        async with AsyncExitStack() as stack:
            services = await process.opened(lambda attempt: open_measured(process, attempt), stack)
            if services is None:
                return 0
            spare = await open_spare(settings, stack)
            models = await prepare_models(process, services, on_progress, stack)
            control = await open_control(process, services, stack, stands_by=False)
            on_progress(models.stage, None)
            opening = asyncio.gather(open_workers(process, services, models, name, stack, spare), _import_gateway())
            opened = await process.unless_stopped(opening)
            if opened is None:
                return 0
            working, _ = opened
            gateway = answering = await open_gateway(
                process, services, models.texts, listener, probes_url, stack, working.served, name
            )

            async def begun() -> None:
                if services.queue_forgets:
                    await control.sweeper.recover()
                process.lifecycle.ready = True
                stack.enter_context(announced(settings.data_dir / "server", gateway.ready.url))
                code = await start_code(settings, services.live.cache, process.clock)
                on_ready(replace(gateway.ready, engine_pids=working.engine_pids, code=code))

            async def drain() -> None:
                # It goes on to listen, for its readers and probes: whoever asks for more is told.
                process.lifecycle.taking = False
                drain_s, forgets = settings.lifecycle.drain_s, services.queue_forgets
                # Jobs are not handed over: their readers are at this process's own gateway, and end with it.
                await working.drain(drain_s, empty_queue=forgets, hand_over=False)

            profiles = profiled(process, services, name, "server", lambda: working.engines)
            parts = (*working.parts, *control.parts, *gateway.parts, profiles)
            return await process.run(
                parts,
                started=begun,
                drain=drain,
                close=gateway.close,
                running=lambda: counted(working.num_jobs, "answer"),
            )


async def _import_gateway() -> None:
    """Imports the web framework, which takes a second, while the engine's process loads its model."""
    await asyncio.sleep(0.05)  # lets the engine's process start first
    await asyncio.to_thread(importlib.import_module, "axon.gateway.app")
