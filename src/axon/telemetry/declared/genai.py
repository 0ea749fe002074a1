"""OpenTelemetry's metrics of generative AI servers, under the names that its Prometheus exporter gives them.

The conventions are in development; their names are here alone.
"""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import Declarations

_LABELS = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_response_model")
_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_USAGE = tuple(float(4**power) for power in range(14))


class GenAiMetrics:
    """What the conventions ask a server to report, on turns as their readers see them."""

    def __init__(self, make: Declarations) -> None:
        make.about("OpenTelemetry's GenAI conventions")
        self.duration = make.histogram(
            "gen_ai_server_request_duration_seconds",
            "From a turn's request to its last token, as gen_ai.server.request.duration.",
            buckets.DURATION,
            *(*_LABELS, "error_type"),
            role="detail",
        )
        self.first_token = make.histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "From a turn's request to its first token, as gen_ai.server.time_to_first_token.",
            _FIRST_TOKEN,
            *_LABELS,
            role="detail",
        )
        self.per_token = make.histogram(
            "gen_ai_server_time_per_output_token_seconds",
            "Mean time of an output token after the first one, as gen_ai.server.time_per_output_token.",
            buckets.PER_TOKEN,
            *_LABELS,
            role="detail",
        )
        self.usage = make.histogram(
            "gen_ai_client_token_usage",
            "Tokens of a turn by type, input or output, as gen_ai.client.token.usage.",
            _USAGE,
            *(*_LABELS, "gen_ai_token_type"),
            unit="tokens",
            role="detail",
        )
