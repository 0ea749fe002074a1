"""Assembles a worker, for ``axon worker`` and for the worker inside ``axon serve``."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from axon.bootstrap.measuring import open_measured
from axon.bootstrap.models.adapters import fetching
from axon.bootstrap.models.model import Model, OnProgress, deployment_of, prepare_model
from axon.bootstrap.models.preflight import require_device, require_engine
from axon.bootstrap.process import Part, Process, Up, counted, started
from axon.bootstrap.profiles import profiled
from axon.bootstrap.services import Services, make_affinity, require_pool, require_shared
from axon.bootstrap.traces import turn_traces
from axon.bootstrap.turn_parts import make_admission, make_ending
from axon.bootstrap.worker.deployed import Following, open_following
from axon.bootstrap.worker.presence import make_announcer, named
from axon.bootstrap.worker.ranks import Ranks
from axon.bootstrap.worker.spare import make_engine, open_spare
from axon.domain.fairness.lane import pool_name
from axon.domain.fleet.cold_start import ColdStart
from axon.domain.model.served_version import ServedVersion
from axon.errors import AxonError, Misconfigured
from axon.registry.cold_starts import ColdStarts
from axon.registry.drain_orders import DrainListener
from axon.runtime.clock import Clock
from axon.runtime.datafolder import shared
from axon.runtime.process_age import process_age_s
from axon.settings import Settings
from axon.worker.child.spare import SpareEngine
from axon.worker.erasing import Kept
from axon.worker.peers.presence import Announcer
from axon.worker.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """A worker whose engine is running and which takes no jobs yet."""

    worker: Worker
    announcer: Announcer
    deployment: ServedVersion
    parts: tuple[Part, ...]


async def serve(settings: Settings, *, on_ready: Callable[[Up], None], on_progress: OnProgress) -> int:
    """Runs until a signal stops it; returns the exit code. A worker of a registered deployment whose version is not
    run any more begins again with another one."""
    require_shared(settings, "worker")
    require_pool(settings)
    require_engine(each.engine for each in settings.each_model())
    require_device(settings.engine)
    before_s = 0.0
    async with AsyncExitStack() as stack:
        spare = await open_spare(settings, stack)
        while (code := await _serve(settings, on_ready, on_progress, before_s, spare)) is None:
            before_s = process_age_s()
        return code


async def _serve(
    settings: Settings,
    on_ready: Callable[[Up], None],
    on_progress: OnProgress,
    before_s: float,
    spare: SpareEngine | None,
) -> int | None:
    """Serves one version; returns the exit code, or None if its version is not run any more. ``before_s`` is the age of
    the process at which the last one ended; 0 for the first."""
    config = settings.worker
    with shared(settings.data_dir), named(settings) as name, started(settings, "axon-worker") as process:
        async with AsyncExitStack() as stack:
            working: Working | None = None
            probing = process.probed(
                *(config.metrics_host, config.metrics_port, "--metrics-port"),
                lambda: config.host_index > 0 or (working is not None and working.announcer.heard),
            )
            url = stack.enter_context(probing)  # loading takes long: probes report "starting" meanwhile

            async def opening(stack: AsyncExitStack) -> _Opened:
                services = await open_measured(process, stack)
                return await _open(process, services, name, on_progress, stack, spare)

            opened = await process.opened(opening, stack)
            if opened is None:
                return 0
            following, services = opened.following, opened.services
            working = opened.working
            if working is None:
                code = await _compute(process, opened.settings, opened.model, opened.beside, on_ready)
                return None if following and following.is_over else code
            facts, worker = _facts(working, name, config.pool), working.worker

            async def begun() -> None:
                process.lifecycle.ready = True
                if following is not None:
                    await note_start(services, working.deployment.version, process_age_s() - before_s, process.clock)
                on_ready(Up(role="worker", facts=(*facts, ("Metrics", f"{url}/metrics"))))

            async def drain() -> None:
                await worker.drain(settings.lifecycle.drain_s)

            profiles = profiled(process, services, name, "worker", lambda: [(working.deployment.name, worker)])
            told = DrainListener(services.live.wakeups, name, process.lifecycle.stop)
            code = await process.run(
                (*working.parts, *opened.beside, *((spare.run,) if spare else ()), profiles, told.run),
                started=begun,
                drain=drain,
                running=lambda: counted(len(worker.jobs), "answer"),
            )
            return None if following and following.is_over else code


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """All that a worker's process has opened."""

    services: Services
    following: Following | None
    settings: Settings
    """Those of its model."""
    model: Model
    working: Working | None
    """None on a host that computes ranks of another host's engine."""

    @property
    def beside(self) -> tuple[Part, ...]:
        """What runs beside the worker."""
        return (*self.services.background, *(self.following.parts if self.following else ()))


async def _open(
    process: Process,
    services: Services,
    name: str,
    on_progress: OnProgress,
    stack: AsyncExitStack,
    spare: SpareEngine | None,
) -> _Opened:
    """Prepares the model and starts the engine; the stack closes them."""
    settings, config = process.settings, process.settings.worker
    following = await open_following(process, services) if config.deployment else None
    own = following.deployed.settings if following else settings
    if following is None:
        model = await asyncio.to_thread(prepare_model, own, on_progress)
    else:
        model = await following.deployed.model(on_progress, stack)
    working = None
    if not config.host_index:
        on_progress("Loading the model", None)
        working = await open_worker(process, own, services, model, name, stack, following, spare)
    return _Opened(services=services, following=following, settings=own, model=model, working=working)


async def _compute(
    process: Process, settings: Settings, model: Model, parts: tuple[Part, ...], on_ready: Callable[[Up], None]
) -> int:
    """Runs this host's ranks of an engine that another host leads, until a signal stops it."""
    if model.folder is None:
        raise Misconfigured("The echo engine has no ranks: worker.host_index is for a model on several hosts.")
    where, count = settings.engine.rendezvous, settings.engine.num_local_ranks
    ranks, stop = Ranks(model.folder, where, count), threading.Event()

    async def compute() -> None:
        try:
            await asyncio.to_thread(ranks.run, stop)
        finally:
            stop.set()

    async def begun() -> None:
        process.lifecycle.ready = True
        on_ready(Up(role="worker", facts=(("Ranks", str(count)), ("Of the engine at", where))))

    async def drain() -> None:
        stop.set()

    return await process.run((compute, *parts), started=begun, drain=drain)


async def open_worker(
    process: Process,
    settings: Settings,
    services: Services,
    model: Model,
    name: str,
    stack: AsyncExitStack,
    following: Following | None = None,
    spare: SpareEngine | None = None,
) -> Working:
    """Starts the engine, out of the spare process if there is one; the stack closes the worker. ``settings`` are those
    of its model; a registered version is served by what ``following`` says."""
    if following is not None:
        following.deployed.check_text(model)
    clock = process.clock
    residences, _ = make_affinity(settings.dispatch, services, clock)
    admission = make_admission(settings, services, clock)
    names = filter(None, map(str.strip, settings.worker.neighbours.split(",")))
    others = {pool_name(each, settings.worker.pool) for each in names}
    worker = Worker(
        deployment=settings.model_name,
        num_lanes=following.deployed.deployment.num_lanes if following else settings.dispatch.num_lanes,
        queue=services.queue,
        live=services.live,
        turns=services.store.turns,
        ending=make_ending(settings, services, admission, clock, turn_traces(process.traces)),
        journal=services.journal,
        tokenizer=model.text.tokenizer,
        make_engine=lambda: make_engine(settings, model, spare),
        config=settings.worker,
        reader_grace_s=settings.sessions.reader_grace_s,
        clock=clock,
        metrics=process.metrics,
        name=name,
        residences=residences,
        tickets=admission,
        letter=following.deployed.letter if following else "",
        letters=following.letter_of if following else lambda version: None,
        neighbours=lambda: process.pools | others,
        zone=settings.zone,
        kept=_kept(settings, services),
        fetch_adapter=fetching(settings),
        restarted_at=clock.now() - process_age_s() if services.queue_forgets else 0.0,
    )
    stack.push_async_callback(worker.aclose)
    process.pools.add(pool := pool_name(settings.model_name, settings.worker.pool))
    stack.callback(process.pools.discard, pool)
    opened_at = clock.monotonic()
    engine = await worker.open()
    loaded_s = clock.monotonic() - opened_at
    if following is None:
        deployment = deployment_of(
            settings.model_name, model, engine, clock.now(), call_format=settings.engine.call_format
        )
    else:
        deployment = await following.served(engine, name)
        worker.identity.marks = frozenset(following.deployed.version.fingerprints)
    worker.identity.version = deployment.version
    note_cold_start(process, worker, loaded_s)
    announcer = make_announcer(
        worker, name, deployment, services.live, process.lifecycle, settings.worker, clock, zone=settings.zone
    )
    stack.push_async_callback(announcer.leave)
    return Working(
        worker=worker,
        announcer=announcer,
        deployment=deployment,
        parts=(worker.run, announcer.run),
    )


def _kept(settings: Settings, services: Services) -> Kept | None:
    """Where erasures are noted, if the engine keeps copies of blocks."""
    engine = settings.engine
    if not engine.kv_folder and not engine.kv_host_bytes:
        return None
    return Kept(services.store.tombstones, engine.kv_folder_max_age_s)


def note_cold_start(process: Process, worker: Worker, loaded_s: float) -> None:
    """Shows in the metrics how long the engine took to load, and the process until now."""
    seconds = process.metrics.engine.cold_start
    seconds.labels("load", *worker.labels).observe(loaded_s)
    seconds.labels("whole", *worker.labels).observe(process_age_s())


async def note_start(services: Services, version: str, seconds: float, clock: Clock) -> None:
    """Records how long a version took to start, which tells those who wait for the next start how long that may be."""
    with contextlib.suppress(AxonError):
        await ColdStarts(services.live.cache).put(version, ColdStart(seconds=seconds, at=clock.now()))


def _facts(working: Working, name: str, pool: str) -> tuple[tuple[str, str], ...]:
    deployment = working.deployment
    return (
        ("Name", name),
        *((("Pool", pool),) if pool else ()),
        ("Model", f"{deployment.name} ({deployment.version}, {deployment.max_model_len} tokens)"),
        ("Slots", str(working.worker.load.slots)),
        ("Engine", f"process {working.worker.engine_pid}"),
    )
