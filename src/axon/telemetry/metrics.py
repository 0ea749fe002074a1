"""All metrics of a process. One object is created at start and passed on; each metric is declared in ``declared/``."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from axon.telemetry.config import Compat
from axon.telemetry.declared.declaring import Declarations, Declared
from axon.telemetry.declared.engines import EngineMetrics
from axon.telemetry.declared.fleet import FleetMetrics
from axon.telemetry.declared.genai import GenAiMetrics
from axon.telemetry.declared.process import ProcessMetrics
from axon.telemetry.declared.queues import QueueMetrics
from axon.telemetry.declared.requests import RequestMetrics
from axon.telemetry.declared.rollouts import RolloutMetrics
from axon.telemetry.declared.services import ServiceMetrics
from axon.telemetry.declared.sessions import SessionMetrics
from axon.telemetry.declared.streams import StreamMetrics
from axon.telemetry.declared.turns import TurnMetrics
from axon.telemetry.declared.vllm import VllmMetrics
from axon.telemetry.declared.work import BatchMetrics, EmbeddingMetrics, GrammarMetrics, RenderMetrics
from axon.telemetry.scrape import serve_scrapes
from axon.telemetry.tenants import TenantLabels
from axon.telemetry.vllm_report import VllmNames

if TYPE_CHECKING:
    from axon.domain.billing.ledger import Ledger
    from axon.domain.billing.usage import Usage


class Metrics:
    """The metrics of one process, in a registry of their own, by subject."""

    def __init__(self, compat: Compat = "none") -> None:
        """``compat``: whose names are shown beside our own."""
        self.registry = CollectorRegistry(auto_describe=True)
        self.tenants = TenantLabels()
        make = Declarations(self.registry)
        self.requests = RequestMetrics(make)
        self.turns = TurnMetrics(make)
        self.queue = QueueMetrics(make)
        self.engine = EngineMetrics(make)
        self.streams = StreamMetrics(make)
        self.sessions = SessionMetrics(make)
        self.fleet = FleetMetrics(make)
        self.rollouts = RolloutMetrics(make)
        self.grammars = GrammarMetrics(make)
        self.renders = RenderMetrics(make)
        self.batches = BatchMetrics(make)
        self.embeddings = EmbeddingMetrics(make)
        self.services = ServiceMetrics(make)
        self.process = ProcessMetrics(make, self.registry)
        self.genai = GenAiMetrics(make)
        self.vllm = VllmNames(VllmMetrics(make)) if compat == "vllm" else None
        """None unless vLLM's names are asked for."""
        self.declared: tuple[Declared, ...] = tuple(make.all)

    def usage(self, tenant: str, usage: "Usage", ledger: "Ledger | None" = None) -> None:
        """Counts an ended turn's tokens."""
        label, tokens = self.tenants.label(tenant), self.turns.tokens
        tokens.labels("prompt", label).inc(usage.prompt_tokens)
        tokens.labels("cached", label).inc(usage.cached_tokens)
        tokens.labels("output", label).inc(usage.output_tokens)
        if ledger is not None:
            tokens.labels("replayed", label).inc(ledger.replayed)
            tokens.labels("wasted", label).inc(ledger.wasted)

    def serve(
        self,
        host: str,
        port: int,
        probes: Mapping[str, Callable[[], str]] = MappingProxyType({}),
        collector: Collector | None = None,
    ) -> tuple[int, Callable[[], None]]:
        """Serves ``GET /metrics`` and the probes; see ``serve_scrapes``."""
        return serve_scrapes(self.registry, host, port, probes, collector)
