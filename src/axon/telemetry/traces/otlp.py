"""Spans as OpenTelemetry's own, sent by OTLP over HTTP or gRPC. The one module that imports ``opentelemetry``."""

import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from axon.domain.tracing.span import Kind, Span
from axon.errors import Misconfigured
from axon.telemetry.build import version
from axon.telemetry.config import TracesConfig

_KINDS = {
    Kind.INTERNAL: SpanKind.INTERNAL,
    Kind.SERVER: SpanKind.SERVER,
    Kind.PRODUCER: SpanKind.PRODUCER,
    Kind.CONSUMER: SpanKind.CONSUMER,
}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NANOS = 1_000_000_000


def make_export(config: TracesConfig, *, service: str) -> tuple[Callable[[Sequence[Span]], bool], Callable[[], None]]:
    """Returns a function that exports spans to the configured collector, and one that closes the exporter. ``service``
    names this process's role."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it logs every failed export; ours are counted
    exporter = _exporter(config)
    resource = Resource(
        {
            "service.name": service,
            "service.version": version(),
            "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
        }
    )

    def export(spans: Sequence[Span]) -> bool:
        return exporter.export([readable(span, resource) for span in spans]) is SpanExportResult.SUCCESS

    return export, exporter.shutdown


def readable(span: Span, resource: Resource) -> ReadableSpan:
    """A span of ours as OpenTelemetry's SDK has it."""
    return ReadableSpan(
        span.name,
        context=_context(span.trace_id, span.span_id, is_remote=False),
        parent=_context(span.trace_id, span.parent_id, is_remote=True) if span.parent_id else None,
        resource=resource,
        attributes=span.attributes,
        links=[Link(_context(span.trace_id, each, is_remote=True)) for each in span.links],
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
        start_time=int(span.start * _NANOS),
        end_time=int(span.end * _NANOS),
        instrumentation_scope=InstrumentationScope("axon", version()),
    )


def _context(trace_id: str, span_id: str, *, is_remote: bool) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=is_remote, trace_flags=_SAMPLED)


def _exporter(config: TracesConfig) -> SpanExporter:
    headers = headers_of(config.headers)
    if config.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

        is_plain = urlsplit(config.endpoint).scheme != "https"
        return GrpcExporter(config.endpoint, insecure=is_plain, headers=dict(headers), timeout=config.timeout_s)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    from axon.telemetry.traces.posting import BoundedSession

    url, session = http_endpoint(config.endpoint), BoundedSession()
    return OTLPSpanExporter(url, headers=headers, timeout=config.timeout_s, session=session)


def http_endpoint(url: str) -> str:
    """The address of the collector's traces: a URL without a path gets OTLP's own."""
    return url if urlsplit(url).path.strip("/") else url.rstrip("/") + "/v1/traces"


def headers_of(text: str) -> Mapping[str, str]:
    """The headers that the setting lists; raises ``Misconfigured`` for one that is no ``NAME=VALUE``."""
    found: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, is_pair, value = part.partition("=")
        if not is_pair or not name.strip():
            raise Misconfigured("traces.headers must be NAME=VALUE for each header, with commas between them.")
        found[name.strip().lower()] = value.strip()
    return found
