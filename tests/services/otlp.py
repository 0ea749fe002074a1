"""An OTLP receiver: takes traces over HTTP and gRPC as a collector does, decodes them and keeps them.

with receiving() as receiver:
    …                                     # a process with traces.endpoint = receiver.url, or receiver.grpc_target
    receiver.of_turn("chatcmpl-…")
"""

import gzip
import threading
from collections.abc import Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Value = str | bool | int | float | tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """A span as it came over the wire; times in seconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: float
    end: float
    attributes: dict[str, Value]
    links: tuple[str, ...]
    error: str
    service: str

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass
class Receiver:
    """``spans`` are all that came, in order."""

    url: str = ""
    grpc_target: str = ""
    spans: list[Seen] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    is_refusing: bool = False
    """Answers every export over HTTP with a 400."""

    def take(self, body: ExportTraceServiceRequest) -> None:
        for resource in body.resource_spans:
            service = _attributes(resource.resource.attributes).get("service.name", "")
            for scope in resource.scope_spans:
                self.spans += [_seen(span, str(service)) for span in scope.spans]

    def of_turn(self, turn_id: str) -> list[Seen]:
        """All spans of the trace that a turn is in."""
        spans = list(self.spans)
        traces = {span.trace_id for span in spans if span.attributes.get("gen_ai.response.id") == turn_id}
        assert len(traces) <= 1, f"{turn_id} is in {len(traces)} traces"
        return [span for span in spans if span.trace_id in traces]


def _seen(span: Span, service: str) -> Seen:
    return Seen(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
        attributes=_attributes(span.attributes),
        links=tuple(link.span_id.hex() for link in span.links),
        error=span.status.message,
        service=service,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Value]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(each.string_value for each in value.array_value.values)
    found: Value = getattr(value, kind) if kind else ""
    return found


class _Service(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def Export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> ExportTraceServiceResponse:
        self._receiver.headers.append({str(name): str(value) for name, value in context.invocation_metadata()})
        self._receiver.take(request)
        return ExportTraceServiceResponse()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on free ports of this machine."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            status = 404 if self.path != "/v1/traces" else 400 if receiver.is_refusing else 200
            if status == 200:
                receiver.take(ExportTraceServiceRequest.FromString(data))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    serving = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    serving.start()
    pool = futures.ThreadPoolExecutor(max_workers=2)
    server = grpc.server(pool)
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Service(receiver), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    receiver.url, receiver.grpc_target = f"http://127.0.0.1:{http.server_port}", f"http://127.0.0.1:{port}"
    try:
        yield receiver
    finally:
        server.stop(None).wait()
        pool.shutdown()
        http.shutdown()
        serving.join()
        http.server_close()
