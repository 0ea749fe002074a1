"""Launches replicas as processes of this machine. They outlive the control that launched them, and another one finds
them again by their files: name, pid and start time. Knows no deployment and decides nothing.

    ensure ─► record "starting" ─► process ─► record "running"
    list   ─► one that has ended: "waiting" ─► started again after a delay that grows
    stop   ─► record "stopping" ─► SIGTERM ─► SIGKILL at its deadline ─► no record

Every step is written down before it is taken, so a launcher may be killed between any two. Only the start of a process
cannot be: one whose pid was not written down is found by the lock that a worker holds on its name.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from axon.adapters.launch import logs, system
from axon.adapters.launch.records import Record, Records
from axon.adapters.launch.system import ProcessId
from axon.domain.fleet.backoff import FIRST_S, delay_s, failures_after
from axon.domain.fleet.replica import Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.runtime.clock import Clock
from axon.runtime.datafolder import holder_of_name

_UNSEEN_S = 15.0
"""Seconds for which a start whose pid was not written down may still be on its way to its name."""

_VISIBLE = "CUDA_VISIBLE_DEVICES"

_logger = structlog.get_logger("axon.launch")

Command = Callable[[ReplicaName, ReplicaSpec], Sequence[str]]
"""The command line of a replica."""


class ProcessLauncher:
    """Several may work on one folder, each in its own process."""

    def __init__(
        self,
        data_dir: Path,
        command: Command,
        clock: Clock,
        *,
        environ: Mapping[str, str],
        stop_s: float = 60.0,
        gpus: Sequence[str] = (),
        zone: str = "",
        max_log_bytes: int = logs.MOST_BYTES,
    ) -> None:
        """``environ`` are the environment variables of replicas, and ``gpus`` the GPUs that they get, each to one.
        A replica that has not drained ``stop_s`` seconds after it was told to is killed."""
        self._data_dir, self._records = data_dir, Records(data_dir / "replicas")
        self._command, self._environ, self._gpus = command, environ, tuple(gpus)
        self._clock, self._stop_s, self._zone, self._max_log_bytes = clock, stop_s, zone, max_log_bytes

    async def list(self) -> Sequence[Launched]:
        """Also starts again what is due, and kills what has drained for too long."""
        return await asyncio.to_thread(self._list)

    async def ensure(self, name: ReplicaName, spec: ReplicaSpec, *, term: int) -> None:
        await asyncio.to_thread(self._ensure, name, spec, term)

    async def stop(self, name: ReplicaName, incarnation: str, *, term: int) -> None:
        await asyncio.to_thread(self._stop, name, incarnation, term)

    def _list(self) -> Sequence[Launched]:
        with self._records.locked():
            tended = [self._tend(each) for each in self._records.all()]
        return [self._launched(each) for each in tended if each is not None]

    def _ensure(self, name: ReplicaName, spec: ReplicaSpec, term: int) -> None:
        with self._records.locked():
            self._records.take_term(term)
            if self._records.get(name) is None:
                new = Record(name=str(name), spec=spec, state=LaunchState.STARTING, since=self._now(), incarnation="")
                self._start(replace(new, incarnation=f"start-{new.since:.3f}"))

    def _stop(self, name: ReplicaName, incarnation: str, term: int) -> None:
        with self._records.locked():
            self._records.take_term(term)
            record = self._records.get(name)
            if record is None or record.incarnation != incarnation:
                return
            if record.state in (LaunchState.STOPPING, LaunchState.STARTING):
                return  # it stops already; or its process is not known yet, and has another incarnation when it is
            due = self._now() + self._stop_s
            stopping = replace(record, state=LaunchState.STOPPING, since=self._now(), due=due, is_told=False)
            self._records.put(stopping)
            self._tend(stopping)

    def _tend(self, record: Record) -> Record | None:
        """Does what is due for a replica; returns its record then, None when it is gone."""
        logs.rotate(self._records.log_of(record.replica), self._max_log_bytes)
        code = None if record.process is None else system.reaped(record.process)
        is_alive = record.process is not None and system.is_alive(record.process)
        match record.state:
            case LaunchState.STOPPING:
                return self._drain(record, is_alive)
            case LaunchState.WAITING:
                return self._start(record) if self._now() >= record.due else record
            case LaunchState.STARTING:
                return self._find(record)
            case LaunchState.RUNNING if not is_alive:
                return self._wait(record, "ended" if code is None else _told(code))
            case _:
                return record

    def _start(self, record: Record) -> Record:
        """Starts a run: written down as starting before, and with its pid after."""
        if (holder := self._holder(record)) is not None:
            return self._adopt(record, holder)
        gpus = self._free_gpus(record)
        if len(gpus) < record.spec.devices:
            return self._wait_for_gpus(record, len(gpus))
        is_again = record.state is LaunchState.WAITING and record.failures > 0
        restarts = record.restarts + int(is_again)
        starting = replace(
            record, state=LaunchState.STARTING, since=self._now(), process=None, restarts=restarts, gpus=gpus
        )
        self._records.put(starting)
        environ = {**self._environ, _VISIBLE: ",".join(gpus)} if gpus else self._environ
        command, log = self._command(record.replica, record.spec), self._records.log_of(record.replica)
        try:
            process = system.spawn(command, environ, log)
        except OSError as error:
            return self._wait(starting, f"cannot be started: {error}")
        _logger.info("replica.started", replica=record.name, pid=process.pid, restarts=restarts)
        return self._run(starting, process)

    def _free_gpus(self, record: Record) -> tuple[str, ...]:
        """GPUs for a replica, as many as it needs if there are as many."""
        taken = {gpu for each in self._records.all() if each.name != record.name for gpu in each.gpus}
        return tuple(gpu for gpu in self._gpus if gpu not in taken)[: record.spec.devices]

    def _wait_for_gpus(self, record: Record, num_free: int) -> Record:
        """A replica without its GPUs is tried again soon: another one that drains may give them up."""
        problem = f"needs {record.spec.devices} GPUs, and {num_free} of {len(self._gpus)} are free"
        due = self._now() + FIRST_S
        waiting = replace(record, state=LaunchState.WAITING, since=self._now(), due=due, problem=problem, gpus=())
        self._records.put(waiting)
        return waiting

    def _find(self, record: Record) -> Record:
        """A start whose pid was not written down: whoever holds the name is it."""
        if (holder := self._holder(record)) is not None:
            return self._adopt(record, holder)
        return record if self._now() < record.since + _UNSEEN_S else self._start(record)

    def _holder(self, record: Record) -> ProcessId | None:
        pid = holder_of_name(self._data_dir, f"{record.replica.group.deployment}/{record.name}")
        return None if pid is None else system.process_id(pid)

    def _adopt(self, record: Record, process: ProcessId) -> Record:
        _logger.info("replica.adopted", replica=record.name, pid=process.pid)
        return self._run(record, process)

    def _run(self, record: Record, process: ProcessId) -> Record:
        running = replace(
            record, state=LaunchState.RUNNING, since=self._now(), process=process, incarnation=str(process)
        )
        self._records.put(running)
        return running

    def _wait(self, record: Record, how: str) -> Record:
        """A run that ended by itself: it is started again after a delay."""
        last = logs.last_line(self._records.log_of(record.replica))
        failures = failures_after(record.failures, self._now() - record.since)
        waiting = replace(
            record,
            state=LaunchState.WAITING,
            since=self._now(),
            process=None,
            gpus=(),
            due=self._now() + delay_s(failures),
            failures=failures + 1,
            problem=f"{how}: {last}" if last else how,
        )
        self._records.put(waiting)
        _logger.warning("replica.ended", replica=record.name, problem=waiting.problem, retry_s=delay_s(failures))
        return waiting

    def _drain(self, record: Record, is_alive: bool) -> Record | None:
        process = record.process or self._holder(record)
        if process is None or not (is_alive or system.is_alive(process)):
            self._records.remove(record.replica)
            _logger.info("replica.stopped", replica=record.name)
            return None
        if not record.is_told:
            system.send(process, signal.SIGTERM)
            record = replace(record, process=process, is_told=True)
            self._records.put(record)
        elif self._now() >= record.due:
            _logger.warning("replica.killed", replica=record.name, after_s=self._stop_s)
            system.send(process, signal.SIGKILL)
        return record

    def _launched(self, record: Record) -> Launched:
        return Launched(
            name=record.replica,
            incarnation=record.incarnation,
            spec=record.spec,
            state=record.state,
            since=record.since,
            restarts=record.restarts,
            zone=self._zone,
            problem=record.problem,
        )

    def _now(self) -> float:
        return self._clock.now()


def _told(code: int) -> str:
    """An exit code in words."""
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
