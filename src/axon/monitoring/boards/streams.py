"""Streams on their way to readers, turns on their way to another worker, and sessions."""

from axon.monitoring.dashboard import Dashboard, Row
from axon.monitoring.panel import MODEL, Panel, Query, most, quantile, quantiles, rate, total

_STREAMS = (
    Panel(
        title="Open streams",
        sentence="Streams that readers follow, and WebSockets that are open.",
        unit="short",
        queries=(
            Query(expr=total("axon_streams_open"), legend="streams"),
            Query(expr=total("axon_sockets"), legend="WebSockets"),
        ),
    ),
    Panel(
        title="Delivery",
        sentence="From the append of a chunk to the log to its frame being written to a reader.",
        unit="s",
        queries=quantiles("axon_stream_delivery_seconds", MODEL),
    ),
    Panel(
        title="Resumed streams",
        sentence="Streams read again from a position a second, by result.",
        unit="ops",
        queries=(Query(expr=rate("axon_stream_resumes_total", "result"), legend="{{result}}"),),
    ),
    Panel(
        title="Cancelled turns",
        sentence="Turns cancelled a second, by cause.",
        unit="ops",
        queries=(Query(expr=rate("axon_cancelled_total", "cause"), legend="{{cause}}"),),
    ),
)
_FAILOVER = (
    Panel(
        title="Failovers",
        sentence="Jobs taken over from a lost attempt a second, and jobs handed over on purpose.",
        unit="ops",
        queries=(
            Query(expr=rate("axon_failovers_total", "cause"), legend="{{cause}}"),
            Query(expr=rate("axon_handed_over_total"), legend="handed over"),
        ),
    ),
    Panel(
        title="Failover time",
        sentence="From the loss of an attempt to the first new token: what one in twenty exceeds.",
        unit="s",
        queries=(Query(expr=quantile(0.95, "axon_failover_seconds", "cause"), legend="p95 {{cause}}"),),
    ),
    Panel(
        title="Fenced writes",
        sentence="Appends refused a second because a later attempt owns the job.",
        unit="ops",
        queries=(Query(expr=rate("axon_fenced_writes_total"), legend="fenced"),),
    ),
    Panel(
        title="Lease age",
        sentence="Seconds since each worker last renewed its lease; others take its jobs when it has run out.",
        unit="s",
        queries=(Query(expr=most("axon_worker_lease_age_seconds", "worker"), legend="{{worker}}"),),
    ),
)
_SESSIONS = (
    Panel(
        title="Sessions",
        sentence="Sessions by state.",
        unit="short",
        queries=(Query(expr=most("axon_sessions", "state"), legend="{{state}}"),),
    ),
    Panel(
        title="Idle time",
        sentence="How long sessions rest until their next turn, or until they are evicted: the median.",
        unit="s",
        queries=(Query(expr=quantile(0.5, "axon_session_idle_seconds", "ended"), legend="{{ended}}"),),
    ),
    Panel(
        title="Evictions",
        sentence="Sessions whose state was dropped a second, by reason.",
        unit="ops",
        queries=(Query(expr=rate("axon_session_evictions_total", "reason"), legend="{{reason}}"),),
    ),
)

DASHBOARD = Dashboard(
    uid="axon-streams",
    title="Axon: streams and failover",
    sentence="Streams on their way to readers, turns that another worker took over, and sessions.",
    rows=(
        Row(title="Streams", panels=_STREAMS),
        Row(title="Failover", panels=_FAILOVER),
        Row(title="Sessions", panels=_SESSIONS),
    ),
)
