"""The first page to look at: is what was promised kept, and what is asked for and answered."""

from axon.monitoring.dashboard import Dashboard, Row
from axon.monitoring.objectives import FIRST_TOKEN_S, GAP_S, OBJECTIVES
from axon.monitoring.panel import MODEL, Panel, Query, most, quantile, quantiles, rate, total

_OBJECTIVES = tuple(
    Panel(
        title=f"Error budget burn: {objective.slo.replace('_', ' ')}",
        sentence=f"How many times as fast as allowed the error budget is spent; {objective.target:.1%} is promised. "
        "At 1 the budget of 30 days lasts 30 days; at 14.4 somebody is paged.",
        unit="short",
        queries=tuple(
            Query(
                expr=f"{objective.recorded}{window} / {objective.budget:g}",
                legend=" ".join([*(f"{{{{{label}}}}}" for label in objective.by), window]),
            )
            for window in ("5m", "1h", "6h")
        ),
        limit=1.0,
    )
    for objective in OBJECTIVES
)
_REQUESTS = (
    Panel(
        title="Requests by route",
        sentence="Requests answered a second.",
        unit="reqps",
        queries=(Query(expr=rate("axon_requests_total", "route"), legend="{{route}}"),),
    ),
    Panel(
        title="Requests by status",
        sentence="Requests answered a second, by HTTP status; 5xx are the server's errors.",
        unit="reqps",
        queries=(Query(expr=rate("axon_requests_total", "outcome"), legend="{{outcome}}"),),
    ),
    Panel(
        title="Request duration",
        sentence="From a request's arrival to its last byte, by route: what one in twenty exceeds.",
        unit="s",
        queries=(Query(expr=quantile(0.95, "axon_request_duration_seconds", "route"), legend="{{route}}"),),
    ),
    Panel(
        title="Turns by outcome",
        sentence="Turns that workers have ended a second.",
        unit="ops",
        queries=(Query(expr=rate("axon_turns_total", "outcome", MODEL), legend="{{outcome}}"),),
    ),
)
_LATENCIES = (
    Panel(
        title="Time to first token",
        sentence="From a request's arrival to its first token.",
        unit="s",
        queries=quantiles("axon_time_to_first_token_seconds", MODEL),
        limit=FIRST_TOKEN_S,
    ),
    Panel(
        title="Gaps between tokens",
        sentence="Between two tokens of a stream, by class: what one in a hundred exceeds.",
        unit="s",
        queries=(
            Query(expr=quantile(0.99, "axon_inter_token_latency_seconds", "class", MODEL), legend="p99 {{class}}"),
        ),
        limit=GAP_S,
    ),
    Panel(
        title="Tokens",
        sentence="Tokens of ended turns a second, by kind.",
        unit="short",
        queries=(Query(expr=rate("axon_model_tokens_total", "kind", MODEL), legend="{{kind}}"),),
    ),
    Panel(
        title="Where a turn's time goes",
        sentence="Mean seconds of a turn in the queue, until its first token, and after that.",
        unit="s",
        queries=tuple(
            Query(
                expr=f"{rate(f'{name}_sum', where=MODEL)} / ({rate(f'{name}_count', where=MODEL)} > 0)", legend=legend
            )
            for name, legend in (
                ("axon_queue_wait_seconds", "queue"),
                ("axon_prefill_seconds", "prefill"),
                ("axon_decode_seconds", "decode"),
                ("axon_turn_duration_seconds", "whole turn"),
            )
        ),
    ),
)
_FLEET = (
    Panel(
        title="Alerts that fire",
        sentence="Number of alerts; the red marks on every panel say when each began.",
        unit="short",
        queries=(Query(expr='count(ALERTS{alertname=~"Axon.*", alertstate="firing"}) or vector(0)', legend="alerts"),),
        kind="stat",
        limit=1.0,
    ),
    Panel(
        title="Workers",
        sentence="Workers that gateways see, by model.",
        unit="short",
        queries=(Query(expr=most("axon_workers", "model", MODEL), legend="{{model}}"),),
    ),
    Panel(
        title="Processes",
        sentence="Processes that take work, and that finish theirs before they stop.",
        unit="short",
        queries=(
            Query(expr=total("axon_ready"), legend="ready"),
            Query(expr=total("axon_draining"), legend="draining"),
        ),
    ),
    Panel(
        title="Releases",
        sentence="Processes by the version of Axon that they run: more than one line during an upgrade.",
        unit="short",
        queries=(Query(expr="count by (version) (axon_build_info)", legend="{{version}}"),),
    ),
    Panel(
        title="Event loop lag",
        sentence="How late the event loop of each process wakes a sleeper: what one in a hundred exceeds.",
        unit="s",
        queries=(Query(expr=quantile(0.99, "axon_event_loop_lag_seconds", "instance"), legend="{{instance}}"),),
    ),
    Panel(
        title="Log lines",
        sentence="Log lines a second by level; a burst of warnings or errors is worth reading.",
        unit="short",
        queries=(Query(expr=rate("axon_log_lines_total", "level"), legend="{{level}}"),),
    ),
)

DASHBOARD = Dashboard(
    uid="axon-overview",
    title="Axon: overview and objectives",
    sentence="Whether what was promised is kept, and what is asked for and answered.",
    rows=(
        Row(title="Objectives", panels=_OBJECTIVES),
        Row(title="Requests", panels=_REQUESTS),
        Row(title="Latency", panels=_LATENCIES),
        Row(title="Fleet", panels=_FLEET),
    ),
)
