"""Opens the export of traces where a collector is configured, and decides what of a turn is exported."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from axon.domain.tracing.context import read_context
from axon.domain.tracing.kept import rebuilt_reason
from axon.domain.tracing.turn_spans import turn_spans
from axon.domain.turn import Turn
from axon.errors import Misconfigured
from axon.telemetry.config import TracesConfig
from axon.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from axon.telemetry.traces.recorder import Recorder

_logger = structlog.get_logger("axon.traces")

_ENDPOINT = re.compile(r"https?://[^/\s:]+(:\d{1,5})?(/\S*)?$|https?://\[[0-9a-fA-F:.]+\](:\d{1,5})?(/\S*)?$")


def open_traces(config: TracesConfig, metrics: Metrics, *, service: str) -> "Recorder | None":
    """Opens the recorder that exports spans; None, with nothing imported, where no collector is configured."""
    if not config.endpoint:
        return None
    if not _ENDPOINT.match(config.endpoint):
        raise Misconfigured(f"traces.endpoint is {config.endpoint!r}; it must be a URL such as http://collector:4318.")
    if not 0.0 <= config.sample_ratio <= 1.0:
        raise Misconfigured(f"traces.sample_ratio is {config.sample_ratio}; it must be from 0 to 1.")
    try:
        from axon.telemetry.traces.otlp import make_export
    except ImportError as error:
        raise Misconfigured(
            "traces.endpoint is set, and OpenTelemetry is not installed: pip install 'axon-serving[otel]'."
        ) from error
    from axon.telemetry.traces.recorder import Recorder

    export, close = make_export(config, service=service)
    return Recorder(
        config,
        export,
        lambda result, number: metrics.process.trace_spans.labels(result).inc(number),
        close_export=close,
    )


def turn_traces(recorder: "Recorder | None") -> Callable[[Turn], None] | None:
    """Returns the function to call with each ended turn: it exports the turn's spans if the turn was sampled, slow,
    failed or failed over. A defect in that costs the trace and not the turn. None where nothing is traced."""
    if recorder is None:
        return None
    config = recorder.config

    def ended(turn: Turn) -> None:
        context = read_context(turn.job.trace)
        if context is None:
            return
        reason = "" if context.sampled else rebuilt_reason(turn.state, turn.ledger, slow_s=config.slow_s)
        if context.sampled or reason:
            try:
                recorder.add(turn_spans(turn, context, reason=reason, with_content=config.content))
            except Exception:
                _logger.exception("traces.turn_left_out")

    return ended
