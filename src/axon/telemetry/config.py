"""Telemetry's section of the settings."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Log lines."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe level that is written."""
    format: Literal["auto", "console", "json"] = "auto"
    """``auto``: for people on a terminal, JSON elsewhere."""
    banner: Literal["auto", "never"] = "auto"
    """The screen with address, key and model that a server prints to stdout when it is ready. ``auto``: unless log
    lines are JSON and go to the same file or pipe; then the event ``process.ready`` alone says it. Containers have two
    pipes and one log: ``never`` keeps that log JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsConfig:
    """Alerts."""

    url: str = field(default="", repr=False, metadata={"url": True})
    """URL of the Alertmanager whose active alerts ``GET /v1/admin/alerts`` returns, such as
    ``http://alertmanager:9093``; empty where there is none."""


Compat = Literal["none", "vllm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """Metrics."""

    compat: Compat = "none"
    """Whose names ``/metrics`` shows beside Axon's own: ``vllm`` for dashboards, KEDA objects and inference gateways
    that were made for vLLM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesConfig:
    """Traces, exported to an OpenTelemetry collector; see docs/tracing.md."""

    endpoint: str = field(default="", metadata={"url": True})
    """URL of the collector, such as ``http://collector:4318``; empty exports nothing and imports nothing. Needs the
    extra ``otel``."""
    protocol: Literal["http", "grpc"] = "http"
    """OTLP over HTTP (usually port 4318) or gRPC (4317)."""
    headers: str = field(default="", repr=False, metadata={"secret": True})
    """Headers of every export, such as a collector's key: ``NAME=VALUE`` for each, with commas between them."""
    sample_ratio: float = 0.1
    """Share of requests that are traced, 0 to 1, decided when a request arrives. A caller's ``traceparent`` decides for
    its own requests."""
    slow_s: float = 30.0
    """A turn that takes at least this many seconds is exported after its end even if it was not sampled, and so is one
    that failed or failed over; 0 means that none is slow."""
    content: bool = False
    """Whether spans carry the text of answers, and of prompts where they are stored. It leaves your servers with
    them."""
    queue: int = 8192
    """Spans that wait for the collector at most; more are dropped and counted."""
    gather_s: float = 2.0
    """Seconds that a span waits for others, so that few exports are made; a process that is killed loses as much."""
    timeout_s: float = 5.0
    """Seconds that an export may take, and that the end of the process waits for the last one."""
