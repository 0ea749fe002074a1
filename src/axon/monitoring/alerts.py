"""All alerts that are not about an objective's burn rate, with their thresholds; docs/slo.md explains each number."""

from axon.monitoring.alert import Alert
from axon.monitoring.objectives import UTILIZATION

_NOT_WANTED = (
    'unless on (model) (sum by (model) (label_replace(axon_replicas{state="wanted"}, '
    '"model", "$1", "group", "([^~#]+).*")) == 0)'
)
"""A deployment that is scaled to zero on purpose has no worker, and nobody needs to hear of it."""


def _appeared(counter: str, by: str, window: str) -> str:
    """Whether a counter with labels has begun within the window: its first event is no increase of anything."""
    return f"sum by ({by}) ({counter} unless {counter} offset {window}) > 0"


WORKERS = (
    Alert(
        name="AxonNoReadyWorkers",
        severity="page",
        watch="max by (model) (axon_workers)",
        expr=f"$watch == 0 {_NOT_WANTED}",
        hold="1m",
        summary="{{ $labels.model }} has no worker.",
        meaning="Turns of this model wait, and are refused when they have waited too long.",
    ),
    Alert(
        name="AxonEngineRestarts",
        severity="ticket",
        watch="sum by (model, worker) (increase(axon_engine_starts_total[15m]))",
        expr="$watch > 2",
        summary="The engine of {{ $labels.worker }} ({{ $labels.model }}) is started again and again.",
        meaning="Each crash pauses the streams of that worker; tokens that were not logged are computed again.",
    ),
    Alert(
        name="AxonKVSaturated",
        severity="ticket",
        watch="max by (model, worker) (axon_kv_usage_ratio)",
        expr="$watch > 0.95",
        hold="10m",
        summary="The KV blocks of {{ $labels.worker }} ({{ $labels.model }}) are used up.",
        meaning="Sequences are parked because blocks run out, and no prompt finds a cached prefix.",
    ),
    Alert(
        name="AxonUtilizationLow",
        severity="ticket",
        watch="sum by (model) (axon_requests_running) / sum by (model) (axon_slot_limit)",
        expr=f"$watch < {UTILIZATION} and on (model) max by (model) (axon_backlog_requests) > 0",
        hold="10m",
        summary="{{ $labels.model }} uses {{ $value | humanizePercentage }} of its slots while turns wait.",
        meaning="Turns wait although workers could run them: something else than the engines holds them up.",
    ),
)

QUEUE = (
    Alert(
        name="AxonBacklogGrowing",
        severity="page",
        watch="max by (model) (axon_backlog_tokens)",
        expr="$watch > 1.1 * max by (model) (axon_backlog_tokens offset 10m)"
        " and on (model) max by (model) (axon_backlog_requests) > 10",
        hold="10m",
        summary="The backlog of {{ $labels.model }} grows.",
        meaning="More is asked for than the workers can do; the time to the first token grows with it.",
    ),
    Alert(
        name="AxonHeldJobs",
        severity="ticket",
        watch="sum by (model) (max_over_time(axon_held_jobs[5m]))",
        expr="$watch > 0",
        hold="10m",
        summary="Workers of {{ $labels.model }} hold jobs that they do not run.",
        meaning="Turns stand still: another worker may own them, or no worker of their version can run them.",
    ),
    Alert(
        name="AxonPoisonJobs",
        severity="ticket",
        watch="sum by (model) (increase(axon_poison_jobs_total[15m]))",
        expr=f"$watch > 0 or {_appeared('axon_poison_jobs_total', 'model', '15m')}",
        summary="Requests crash engines of {{ $labels.model }} and were failed.",
        meaning="Somebody sends what the engine cannot survive; each try has interrupted the streams beside it.",
    ),
    Alert(
        name="AxonDeadLetters",
        severity="ticket",
        watch="sum(increase(axon_dead_letters_total[15m]))",
        expr="$watch > 0",
        summary="The store has refused {{ $value }} records of the journal.",
        meaning="These turns are in no conversation and on no bill until somebody has dealt with them.",
    ),
)

STREAMS = (
    Alert(
        name="AxonFencedWrites",
        severity="ticket",
        watch="sum(increase(axon_fenced_writes_total[30m]))",
        expr="$watch > 0",
        hold="5m",
        summary="Workers write to jobs that others have taken over.",
        meaning="No stream is wrong, but workers pause longer than their leases hold, and work is done twice.",
    ),
    Alert(
        name="AxonPinConflicts",
        severity="ticket",
        watch="sum by (kind) (increase(axon_pin_conflicts_total[15m]))",
        expr=f"$watch > 0 or {_appeared('axon_pin_conflicts_total', 'kind', '15m')}",
        hold="5m",
        summary="Turns ask for another version than their session is on ({{ $labels.kind }}).",
        meaning="A client mixes versions in one session, or two turns begin the same session at once.",
    ),
)

CONTROL = (
    Alert(
        name="AxonRolloutStuck",
        severity="ticket",
        watch="max by (model, version) (axon_rollout_stuck_seconds)",
        expr="$watch > {30m}",
        summary="The rollout of {{ $labels.version }} to {{ $labels.model }} cannot go on.",
        meaning="Both versions hold workers, and new sessions keep beginning on the share of the last step.",
    ),
    Alert(
        name="AxonNoLeader",
        severity="page",
        watch="sum by (namespace) (axon_leads)",  # each installation has its own: `axon serve` leads itself
        expr="$watch == 0",
        hold="2m",
        summary="No control leads.",
        meaning="Orphaned turns are not taken up, deadlines are not kept, nothing is scaled and no rollout goes on.",
    ),
)

DATA = (
    Alert(
        name="AxonWalLag",
        severity="page",
        watch="max(axon_wal_oldest_seconds)",
        expr="$watch > {60s}",
        hold="1m",
        summary="The journal's oldest record waits for the store since {{ $value | humanizeDuration }}.",
        meaning="Ended turns are in the broker alone; conversations are read from there, and the broker's disk fills.",
    ),
    Alert(
        name="AxonDependencyDown",
        severity="page",
        watch="min by (dep) (axon_dependency_up)",
        expr="$watch == 0",
        hold="1m",
        summary="Calls of {{ $labels.dep }} fail.",
        meaning="A service that processes need does not answer at least one of them.",
    ),
    Alert(
        name="AxonMetricsAbsent",
        severity="page",
        watch="axon_build_info",
        expr="absent($watch)",
        hold="5m",
        summary="Prometheus sees no process of Axon.",
        meaning="All other alerts are silent while this one fires.",
    ),
    Alert(
        name="AxonProcessDown",
        severity="ticket",
        watch='up{job=~"axon.*"}',
        expr="$watch == 0",
        hold="5m",
        summary="{{ $labels.instance }} cannot be scraped.",
        meaning="The process is gone or does not answer; its part of every other figure is missing.",
    ),
)

GROUPS = {
    "axon-workers": WORKERS,
    "axon-queue": QUEUE,
    "axon-streams": STREAMS,
    "axon-control": CONTROL,
    "axon-data": DATA,
}
