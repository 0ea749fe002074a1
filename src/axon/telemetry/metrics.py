"""All metrics, each declared once with a description. One object is created at start and passed on."""

import json
import platform
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from socketserver import ThreadingMixIn
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.exposition import make_wsgi_app
from prometheus_client.registry import Collector

from axon.domain.tenant import Tier
from axon.telemetry.build import version
from axon.telemetry.tenants import TenantLabels

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

    from axon.domain.ledger import Ledger
    from axon.domain.usage import Usage

_DURATION = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0),
)
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_STEP = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_LAG = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 5.0)


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
    def step_s(self) -> float: ...
    @property
    def gpus(self) -> Sequence[Gpu]: ...


class Metrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.tenants = TenantLabels()
        self._engines: dict[str, _EngineMetrics] = {}
        self._declare_requests()
        self._declare_latencies()
        self._declare_engine()
        self._declare_health()

    def _declare_requests(self) -> None:
        self.requests = self._counter(
            "axon_requests_total", "Requests answered, by route and outcome.", "route", "outcome", "tenant"
        )
        self.paced = self._gauge(
            "axon_paced_requests", "Running requests whose tokens come at the rate of their tenant's bucket.", "model"
        )
        self.tokens = self._counter(
            "axon_tokens_total", "Tokens by kind: prompt, cached, output, replayed or wasted.", "kind", "tenant"
        )
        self.rejected = self._counter("axon_rejected_total", "Requests admission turned away.", "reason", "tenant")
        self.cancelled = self._counter(
            "axon_cancelled_total",
            "Turns that were cancelled: asked for, their client left, absent for too long, or its key revoked.",
            "cause",
        )
        self.requests_running = self._gauge("axon_requests_running", "Sequences running in the engine.", "model")

    def _declare_latencies(self) -> None:
        self.request_duration = self._histogram(
            "axon_request_duration_seconds", "From a request's arrival to its last byte.", _DURATION
        )
        self.time_to_first_token = self._histogram(
            "axon_time_to_first_token_seconds", "From a request's arrival to its first token.", _FIRST_TOKEN
        )
        self.inter_token_latency = self._histogram(
            "axon_inter_token_latency_seconds", "Between two tokens of one stream.", _PER_TOKEN
        )
        self.taken = self._counter("axon_taken_total", "Jobs taken, by the worker's own lane or a tenant's.", "lane")
        self.queue_wait = self._histogram(
            "axon_queue_wait_seconds", "From a job's publishing to a worker taking it.", _FIRST_TOKEN
        )

    def _declare_engine(self) -> None:
        self.batch_size = self._gauge("axon_batch_size", "Sequences in the engine's last step.", "model")
        self.step = self._histogram("axon_step_seconds", "One step of the engine.", _STEP, "model")
        self.kv_blocks = self._gauge("axon_kv_blocks", "KV blocks by state: free, used or cached.", "state", "model")
        self.kv_usage = self._gauge("axon_kv_usage_ratio", "Share of the KV blocks in use, 0 to 1.", "model")
        self.slots = self._gauge("axon_slots", "Slots of the engine that are taken, by tier.", "tier", "model")
        self.preemptions = self._counter("axon_preemptions_total", "Sequences parked because blocks ran out.", "model")
        self.yielded = self._counter(
            "axon_yielded_total", "Sequences parked because their slot was another's part.", "model"
        )
        self.drafts = self._counter(
            "axon_draft_tokens_total", "Guessed tokens: drafted, and of these accepted.", "stage", "model"
        )

        self.gpu_utilization = self._gauge(
            "axon_gpu_utilization_ratio", "Share of the time in which the GPU ran something, 0 to 1.", "gpu"
        )
        self.gpu_memory = self._gauge("axon_gpu_memory_bytes", "Memory of the GPU in use, by whomever.", "gpu")

    def _declare_health(self) -> None:
        self.failovers = self._counter("axon_failovers_total", "Jobs taken over from a lost attempt.", "cause")
        self.handed_over = self._counter("axon_handed_over_total", "Jobs given up so that another worker goes on.")
        self.sessions_moved = self._counter(
            "axon_sessions_moved_total", "Sessions moved to another version than they were on.", "reason"
        )
        self.waiting_turns = self._gauge(
            "axon_waiting_turns", "Turns of all gateways that wait for a deployment while it starts.", "model"
        )
        self.cold_turns = self._counter(
            "axon_cold_turns_total", "Turns accepted while their version had no worker, which wait for one.", "model"
        )
        self.scaling_turns = self._counter(
            "axon_scaling_turns_total",
            "Turns accepted by a full pool that would have been refused if it could not get more workers.",
            "model",
        )
        self.fallbacks = self._counter(
            "axon_fallbacks_total", "Turns that a fallback answers for the asked deployment.", "from", "to"
        )
        self.fenced_writes = self._counter(
            "axon_fenced_writes_total", "Appends refused because a later attempt owns the job."
        )
        self.stream_resumes = self._counter("axon_stream_resumes_total", "Streams read again from a seq.", "result")
        self.event_loop_lag = self._histogram(
            "axon_event_loop_lag_seconds", "How late the event loop wakes a sleeper.", _LAG
        )
        self.draining = self._gauge("axon_draining", "1 while the process finishes its work before it stops, else 0.")
        self.leads = self._gauge("axon_leads", "1 while this control leads, 0 while it stands by.")
        self.launches = self._gauge("axon_launches", "1 while this control launches workers, else 0.")
        self.replicas = self._gauge(
            "axon_replicas", "Replicas that control's leader wants, and that start, serve and drain.", "group", "state"
        )
        self.replicas_waiting = self._gauge(
            "axon_replicas_waiting", "Launched replicas that ended by themselves and wait to be started again."
        )
        self.fleet_orders = self._counter(
            "axon_fleet_orders_total", "Orders of control's leader to its launcher.", "action", "result"
        )
        self.workers = self._gauge(
            "axon_workers", "Workers that this gateway sees, the draining ones not counted.", "model"
        )
        self.free_slots = self._gauge(
            "axon_free_slots", "Sequences that the workers a gateway sees could still take.", "model"
        )
        build = Info("axon_build", "The running version of Axon and of Python.", registry=self.registry)
        build.info({"version": version(), "python": platform.python_version()})
        ProcessCollector(registry=self.registry)

    def engine(self, model: str, counters: EngineCounters) -> None:
        """Adds the counters of a model's engine since the last report."""
        engine = self._engines.get(model)
        if engine is None:
            engine = self._engines[model] = _EngineMetrics(self, model)
        engine.report(counters)

    def usage(self, tenant: str, usage: "Usage", ledger: "Ledger | None" = None) -> None:
        """Counts an ended turn's tokens."""
        label = self.tenants.label(tenant)
        self.tokens.labels("prompt", label).inc(usage.prompt_tokens)
        self.tokens.labels("cached", label).inc(usage.cached_tokens)
        self.tokens.labels("output", label).inc(usage.output_tokens)
        if ledger is not None:
            self.tokens.labels("replayed", label).inc(ledger.replayed)
            self.tokens.labels("wasted", label).inc(ledger.wasted)

    def serve(
        self,
        host: str,
        port: int,
        probes: Mapping[str, Callable[[], str]] = MappingProxyType({}),
        collector: Collector | None = None,
    ) -> tuple[int, Callable[[], None]]:
        """Serves ``GET /metrics`` and the probes from a thread; returns the bound port and a function that stops it.

        A probe, called by its path, returns what is wrong, or an empty string. A ``collector`` is shown in place of
        this process's own metrics.
        """
        app = make_wsgi_app(self.registry if collector is None else _registry_of(collector))

        def answered(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
            path = environ["PATH_INFO"]
            if path == "/metrics":
                answer: Iterable[bytes] = app(environ, start_response)
                return answer
            if path in probes:
                wrong = probes[path]()
                status = "503 Service Unavailable" if wrong else "200 OK"
                start_response(status, [("Content-Type", "application/json")])
                return [json.dumps({"status": wrong or "ok"}).encode()]
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"The metrics are at /metrics.\n"]

        server = make_server(host, port, answered, server_class=_Server, handler_class=_QuietHandler)
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="metrics", daemon=True)
        thread.start()

        def close() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return server.server_port, close

    def _counter(self, name: str, sentence: str, *labels: str) -> Counter:
        return Counter(name, sentence, labels, registry=self.registry)

    def _gauge(self, name: str, sentence: str, *labels: str) -> Gauge:
        return Gauge(name, sentence, labels, registry=self.registry)

    def _histogram(self, name: str, sentence: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, sentence, labels, buckets=buckets, registry=self.registry)


class _EngineMetrics:
    """The metrics of one model's engine, looked up once, because every step sets them."""

    def __init__(self, metrics: Metrics, model: str) -> None:
        self._metrics = metrics
        self._running, self._batch = metrics.requests_running.labels(model), metrics.batch_size.labels(model)
        self._step = metrics.step.labels(model)
        self._blocks = [metrics.kv_blocks.labels(state, model) for state in ("free", "used", "cached")]
        self._kv_usage = metrics.kv_usage.labels(model)
        self._slots = {tier: metrics.slots.labels(tier, model) for tier in Tier}
        self._counters = {
            "preemptions": metrics.preemptions.labels(model),
            "yielded": metrics.yielded.labels(model),
            "drafted": metrics.drafts.labels("drafted", model),
            "accepted": metrics.drafts.labels("accepted", model),
        }
        self._seen = dict.fromkeys(self._counters, 0)
        """The engine's last counter values; the engine may have started later than this process."""
        self._state: tuple[object, ...] | None = None
        """What its gauges show."""

    def report(self, counters: EngineCounters) -> None:
        """Adds the engine's counters since the last report, and shows its state where it has changed."""
        if counters.step_s > 0:
            self._step.observe(counters.step_s)
        for name, counter in self._counters.items():
            if num := self._new(name, getattr(counters, name)):
                counter.inc(num)
        state = _state(counters)
        if state != self._state:  # most steps change none of a dozen gauges, each with a lock
            self._state = state
            self._show(counters)

    def _show(self, counters: EngineCounters) -> None:
        self._running.set(counters.num_running)
        self._batch.set(counters.num_running)
        blocks = (counters.blocks_free, counters.blocks_used, counters.blocks_cached)
        for gauge, num in zip(self._blocks, blocks, strict=True):
            gauge.set(num)
        self._kv_usage.set(counters.blocks_used / (sum(blocks) or 1))
        for gpu in counters.gpus:
            self._metrics.gpu_utilization.labels(str(gpu.index)).set(gpu.utilization)
            self._metrics.gpu_memory.labels(str(gpu.index)).set(gpu.memory_bytes)
        taken = dict.fromkeys(Tier, 0)
        for priority, num in counters.running_by_priority.items():
            taken[Tier.of(priority)] += num
        for tier, num in taken.items():
            self._slots[tier].set(num)

    def _new(self, name: str, count: int) -> int:
        seen, self._seen[name] = self._seen[name], count
        return count - seen if count >= seen else count


def _state(counters: EngineCounters) -> tuple[object, ...]:
    """What the engine's gauges show of these counters, to be compared with the last ones."""
    gpus = tuple((gpu.index, gpu.utilization, gpu.memory_bytes) for gpu in counters.gpus)
    blocks = (counters.blocks_free, counters.blocks_used, counters.blocks_cached)
    return counters.num_running, blocks, gpus, dict(counters.running_by_priority)


def _registry_of(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return registry


class _Server(ThreadingMixIn, WSGIServer):
    """A thread per request, so that slow scrapers block neither each other nor the exit of the process."""

    daemon_threads = True

    def server_bind(self) -> None:
        # wsgiref would look up the host name in the DNS here, which can take seconds and is not needed.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _QuietHandler(WSGIRequestHandler):
    timeout = 10.0

    def log_message(self, format: str, *args: Any) -> None:
        """Does not log requests."""
