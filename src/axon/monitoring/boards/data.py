"""The services behind Axon: the journal, the store, the queue and live."""

from axon.monitoring.dashboard import Dashboard, Row
from axon.monitoring.panel import Panel, Query, most, quantile, rate

_SERVICES = (
    Panel(
        title="Services that answer",
        sentence="0 while at least one process fails to call the service.",
        unit="short",
        queries=(Query(expr="min by (dep) (axon_dependency_up)", legend="{{dep}}"),),
    ),
    Panel(
        title="Failed calls",
        sentence="Calls of a service that failed, a second.",
        unit="ops",
        queries=(Query(expr=rate("axon_dependency_errors_total", "dep, op"), legend="{{dep}} {{op}}"),),
    ),
    Panel(
        title="Calls",
        sentence="Calls of each service a second.",
        unit="ops",
        queries=(Query(expr=rate("axon_dependency_op_seconds_count", "dep, op"), legend="{{dep}} {{op}}"),),
    ),
    Panel(
        title="Call time",
        sentence="One call of a service: what one in a hundred exceeds.",
        unit="s",
        queries=(Query(expr=quantile(0.99, "axon_dependency_op_seconds", "dep, op"), legend="{{dep}} {{op}}"),),
    ),
)
_JOURNAL = (
    Panel(
        title="Journal: age",
        sentence="Time since the persister got the oldest record that is not in the store.",
        unit="s",
        queries=(Query(expr=most("axon_wal_oldest_seconds"), legend="oldest"),),
        limit=60.0,
    ),
    Panel(
        title="Journal: records",
        sentence="Records of the journal that are not in the store.",
        unit="short",
        queries=(Query(expr=most("axon_wal_pending_records"), legend="records"),),
    ),
    Panel(
        title="Journal: size",
        sentence="Size of the journal's records that are not in the store.",
        unit="bytes",
        queries=(Query(expr=most("axon_wal_bytes"), legend="bytes"),),
    ),
)
_PROCESSES = (
    Panel(
        title="Memory of processes",
        sentence="Memory that each process holds (resident set).",
        unit="bytes",
        queries=(Query(expr=most("process_resident_memory_bytes", "instance"), legend="{{instance}}"),),
    ),
    Panel(
        title="Processor time",
        sentence="Cores that each process keeps busy.",
        unit="short",
        queries=(Query(expr=rate("process_cpu_seconds_total", "instance"), legend="{{instance}}"),),
    ),
)

DASHBOARD = Dashboard(
    uid="axon-data",
    title="Axon: data tier",
    sentence="The services behind Axon, as its processes see them, and the journal on its way to the store.",
    rows=(
        Row(title="Services", panels=_SERVICES),
        Row(title="Journal", panels=_JOURNAL),
        Row(title="Processes", panels=_PROCESSES),
    ),
)
