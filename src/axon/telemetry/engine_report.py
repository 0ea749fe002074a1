"""Sets the metrics of one worker's engine. Everything is looked up once, because every step sets it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from axon.domain.tenants.tenant import Tier
from axon.domain.turn import Turn
from axon.telemetry.metrics import Metrics
from axon.telemetry.shelf_report import ShelfCounters, ShelfReport, since
from axon.telemetry.turn_report import report_turn

_BLOCK_STATES = ("free", "used", "cached")


class Gpu(Protocol):
    """An engine's view of one GPU."""

    @property
    def index(self) -> int: ...
    @property
    def utilization(self) -> float: ...
    @property
    def memory_bytes(self) -> int: ...


class EngineCounters(Protocol):
    """Counters and gauges that an engine reports after a step."""

    @property
    def num_running(self) -> int: ...
    @property
    def num_waiting(self) -> int: ...
    @property
    def batch_tokens(self) -> int: ...
    @property
    def blocks_free(self) -> int: ...
    @property
    def blocks_used(self) -> int: ...
    @property
    def blocks_cached(self) -> int: ...
    @property
    def preemptions(self) -> int: ...
    @property
    def yielded(self) -> int: ...
    @property
    def running_by_priority(self) -> Mapping[int, int]: ...
    @property
    def drafted(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def model_drafted(self) -> int: ...
    @property
    def model_accepted(self) -> int: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def step_s(self) -> float: ...
    @property
    def gpus(self) -> Sequence[Gpu]: ...
    @property
    def shelf(self) -> ShelfCounters | None: ...
    @property
    def adapters_loaded(self) -> int: ...
    @property
    def adapters_dropped(self) -> int: ...


class WorkerLabels(NamedTuple):
    """The labels of one worker's metrics."""

    model: str
    version: str = ""
    worker: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fresh:
    """The counters of an engine that has run nothing."""

    num_running: int = 0
    num_waiting: int = 0
    batch_tokens: int = 0
    blocks_free: int = 0
    blocks_used: int = 0
    blocks_cached: int = 0
    preemptions: int = 0
    yielded: int = 0
    running_by_priority: Mapping[int, int] = field(default_factory=dict)
    drafted: int = 0
    accepted: int = 0
    model_drafted: int = 0
    model_accepted: int = 0
    sent_bytes: int = 0
    step_s: float = 0.0
    gpus: Sequence[Gpu] = ()
    shelf: ShelfCounters | None = None
    adapters_loaded: int = 0
    adapters_dropped: int = 0


class EngineReport:
    """Shows what one worker's engine says of itself."""

    def __init__(self, metrics: Metrics, who: WorkerLabels) -> None:
        engine = self._engine = metrics.engine
        self._metrics, self._who = metrics, who
        self.vllm = metrics.vllm.engine(who.model) if metrics.vllm else None
        """The same under vLLM's names; None unless they are asked for."""
        self._poison = metrics.queue.poison.labels(*who)
        self._inputs = metrics.embeddings.inputs.labels(*who)
        self._microbatch, self._input_wait = (
            each.labels(*who) for each in (metrics.embeddings.microbatch, metrics.embeddings.wait)
        )
        self._kv_lost = metrics.sessions.evictions.labels("kv")
        self._running, self._waiting = engine.running.labels(*who), engine.waiting.labels(*who)
        self._batch, self._step = engine.batch_size.labels(*who), engine.step.labels(*who)
        self._step_tokens, self._generated = engine.step_tokens.labels(*who), engine.generated.labels(*who)
        self._blocks = [engine.kv_blocks.labels(state, *who) for state in _BLOCK_STATES]
        self._kv_usage = engine.kv_usage.labels(*who)
        self._prefix_queries, self._prefix_hits = engine.prefix_queries.labels(*who), engine.prefix_hits.labels(*who)
        self._up, self._starts = engine.up.labels(*who), engine.starts.labels(*who)
        self._slot_limit = engine.slot_limit.labels(*who)
        self._slots = {tier: engine.slots.labels(tier, *who) for tier in Tier}
        self._counters = {
            "preemptions": engine.preemptions.labels(*who),
            "yielded": engine.yielded.labels(*who),
            "drafted": engine.drafts.labels("drafted", "lookup", *who),
            "accepted": engine.drafts.labels("accepted", "lookup", *who),
            "model_drafted": engine.drafts.labels("drafted", "model", *who),
            "model_accepted": engine.drafts.labels("accepted", "model", *who),
            "sent_bytes": engine.rank_bytes.labels(*who),
            "adapters_loaded": engine.adapters.labels("load", *who),
            "adapters_dropped": engine.adapters.labels("drop", *who),
        }
        self._shelf: ShelfReport | None = None
        """Made with the first step of an engine that has a shelf: others show nothing of one."""
        self._seen = dict.fromkeys(self._counters, 0)
        """The engine's last counter values; the engine may have started later than this process."""
        self._state: tuple[object, ...] | None = None
        """The values that the gauges show now; None before the first step."""

    def began(self, *, num_slots: int, num_blocks: int) -> None:
        """The engine is up, with so many slots and KV blocks, and has run nothing."""
        self._up.set(1)
        self._starts.inc()
        self._slot_limit.set(num_slots)
        if self._state is None:
            self._show(_Fresh(blocks_free=num_blocks))

    def died(self) -> None:
        """The engine has gone, and another is being started."""
        self._up.set(0)

    def closed(self) -> None:
        """The worker has left and its process goes on: its gauges would show its last state for ever."""
        engine = self._engine
        whole = (engine.running, engine.waiting, engine.batch_size, engine.kv_usage, engine.up, engine.slot_limit)
        for gauge in whole:
            gauge.remove(*self._who)
        for state in _BLOCK_STATES:
            engine.kv_blocks.remove(state, *self._who)
        for tier in Tier:
            engine.slots.remove(tier, *self._who)
        if self._shelf is not None:
            self._shelf.closed()
        if self.vllm is not None:
            self.vllm.closed()

    def first_token(self, *, num_prompt: int, num_cached: int, seconds: float, goes_on: bool) -> None:
        """A choice has its first token, so many seconds after its turn was accepted: a prompt was computed, of which
        the prefix cache had some. ``goes_on``: the turn goes on from another one of its session."""
        self._prefix_queries.inc(num_prompt)
        self._prefix_hits.inc(num_cached)
        if goes_on and not num_cached:
            self._kv_lost.inc()
        if self.vllm is not None:
            self.vllm.began(num_prompt=num_prompt, num_cached=num_cached, seconds=seconds)

    def ended(self, turn: Turn) -> None:
        """A turn of this worker has ended."""
        report_turn(self._metrics, turn)
        if self.vllm is not None:
            self.vllm.ended(turn)

    def embedded(self, waits_s: Sequence[float]) -> None:
        """A microbatch was computed, whose inputs had waited for so long since the worker took them."""
        self._inputs.inc(len(waits_s))
        self._microbatch.observe(len(waits_s))
        for each in waits_s:
            self._input_wait.observe(each)

    def poisoned(self) -> None:
        """A job was failed because it crashed engines repeatedly."""
        self._poison.inc()

    def took_over(self, cause: str, seconds: float) -> None:
        """A job that was lost has a new token, so many seconds after its loss."""
        self._metrics.streams.failover.labels(cause).observe(max(0.0, seconds))

    def stepped(self, counters: EngineCounters, num_drawn: int) -> None:
        """Adds the engine's counters since the last report, and shows its state where it has changed. ``num_drawn``
        tokens of answers came out of the step."""
        if counters.step_s > 0:
            self._step.observe(counters.step_s)
        if counters.batch_tokens:
            self._step_tokens.inc(counters.batch_tokens)
        if num_drawn:
            self._generated.inc(num_drawn)
        num_preempted = counters.preemptions - self._seen["preemptions"]
        for name, counter in self._counters.items():
            if num := self._new(name, getattr(counters, name)):
                counter.inc(num)
        if counters.shelf is not None:
            self._shelf = self._shelf or ShelfReport(self._engine, self._who)
            self._shelf.show(counters.shelf)
        if self.vllm is not None:
            num_tokens, num_preempted = counters.batch_tokens, max(0, num_preempted)
            self.vllm.stepped(num_tokens=num_tokens, num_drawn=num_drawn, num_preempted=num_preempted)
        state = _state(counters)
        if state != self._state:  # most steps change none of a dozen gauges, each with a lock
            self._state = state
            self._show(counters)

    def _show(self, counters: EngineCounters) -> None:
        self._running.set(counters.num_running)
        self._waiting.set(counters.num_waiting)
        self._batch.set(counters.num_running)
        blocks = (counters.blocks_free, counters.blocks_used, counters.blocks_cached)
        for gauge, num in zip(self._blocks, blocks, strict=True):
            gauge.set(num)
        kv_usage = counters.blocks_used / (sum(blocks) or 1)
        self._kv_usage.set(kv_usage)
        if self.vllm is not None:
            self.vllm.show(num_running=counters.num_running, num_waiting=counters.num_waiting, kv_usage=kv_usage)
        for gpu in counters.gpus:
            self._engine.gpu_utilization.labels(str(gpu.index)).set(gpu.utilization)
            self._engine.gpu_memory.labels(str(gpu.index)).set(gpu.memory_bytes)
        taken = dict.fromkeys(Tier, 0)
        for priority, num in counters.running_by_priority.items():
            taken[Tier.of(priority)] += num
        for tier, num in taken.items():
            self._slots[tier].set(num)

    def _new(self, name: str, count: int) -> int:
        seen, self._seen[name] = self._seen[name], count
        return since(seen, count)


def _state(counters: EngineCounters) -> tuple[object, ...]:
    """What the engine's gauges show of these counters, to be compared with the last ones."""
    gpus = tuple((gpu.index, gpu.utilization, gpu.memory_bytes) for gpu in counters.gpus)
    blocks = (counters.blocks_free, counters.blocks_used, counters.blocks_cached)
    return counters.num_running, counters.num_waiting, blocks, gpus, dict(counters.running_by_priority)
