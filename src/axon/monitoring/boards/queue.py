"""The queue, and how many workers there are for what waits in it."""

from axon.monitoring.dashboard import Dashboard, Row
from axon.monitoring.objectives import UTILIZATION
from axon.monitoring.panel import MODEL, Panel, Query, most, quantiles, rate, total

_QUEUE = (
    Panel(
        title="Backlog in requests",
        sentence="Accepted turns that no worker has taken.",
        unit="short",
        queries=(Query(expr=most("axon_backlog_requests", "model", MODEL), legend="{{model}}"),),
    ),
    Panel(
        title="Backlog in tokens",
        sentence="Expected tokens of the turns that no worker has taken; the autoscaler goes by them.",
        unit="short",
        queries=(Query(expr=most("axon_backlog_tokens", "model", MODEL), legend="{{model}}"),),
    ),
    Panel(
        title="Wait in the queue",
        sentence="From a job's publishing to a worker taking it.",
        unit="s",
        queries=quantiles("axon_queue_wait_seconds", MODEL),
    ),
    Panel(
        title="Jobs taken",
        sentence="Jobs taken a second: from a worker's own lane, where follow-up turns wait, or from a tenant's.",
        unit="ops",
        queries=(Query(expr=rate("axon_taken_total", "lane"), legend="{{lane}}"),),
    ),
    Panel(
        title="Utilisation",
        sentence="Share of the slots that run a sequence; it should be above 70 % while turns wait.",
        unit="percentunit",
        queries=(
            Query(
                expr=f"{total('axon_requests_running', 'model', MODEL)} / {total('axon_slot_limit', 'model', MODEL)}",
                legend="{{model}}",
            ),
        ),
        limit=UTILIZATION,
    ),
    Panel(
        title="Held jobs",
        sentence="Deliveries that a worker holds and does not run.",
        unit="short",
        queries=(Query(expr=total("axon_held_jobs", "worker", MODEL), legend="{{worker}}"),),
    ),
    Panel(
        title="Jobs that nobody can run",
        sentence="Jobs failed because they crashed engines, and records of the journal that the store refused.",
        unit="short",
        queries=(
            Query(expr=total("axon_poison_jobs_total", "model", MODEL), legend="{{model}} poison"),
            Query(expr=total("axon_dead_letters_total"), legend="dead letters"),
        ),
    ),
)
_SCALING = (
    Panel(
        title="Replicas",
        sentence="Replicas that control wants, and that start, serve and drain.",
        unit="short",
        queries=(Query(expr=most("axon_replicas", "group, state"), legend="{{group}} {{state}}"),),
    ),
    Panel(
        title="Free slots",
        sentence="Sequences that the workers could still take.",
        unit="short",
        queries=(Query(expr=most("axon_free_slots", "model", MODEL), legend="{{model}}"),),
    ),
    Panel(
        title="Decisions of the autoscaler",
        sentence="Decisions a second by direction, and by the signal that decided.",
        unit="ops",
        queries=(
            Query(
                expr=rate("axon_scaling_decisions_total", "group, direction, reason"),
                legend="{{group}} {{direction}}: {{reason}}",
            ),
        ),
    ),
    Panel(
        title="Orders to the launcher",
        sentence="Orders of control's leader a second, by action and result.",
        unit="ops",
        queries=(Query(expr=rate("axon_fleet_orders_total", "action, result"), legend="{{action}} {{result}}"),),
    ),
    Panel(
        title="Turns that wait for workers",
        sentence="Turns that wait for a deployment while it starts, and such turns accepted a second.",
        unit="short",
        queries=(
            Query(expr=most("axon_waiting_turns", "model", MODEL), legend="{{model}} waiting"),
            Query(expr=rate("axon_cold_turns_total", "model", MODEL), legend="{{model}} accepted a second"),
        ),
    ),
    Panel(
        title="Control",
        sentence="Controls that lead and that launch (one of each), and replicas that wait to be started again.",
        unit="short",
        queries=(
            Query(expr=total("axon_leads"), legend="lead"),
            Query(expr=total("axon_launches"), legend="launch"),
            Query(expr=most("axon_replicas_waiting"), legend="replicas waiting"),
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="axon-queue",
    title="Axon: queue and scaling",
    sentence="What waits, who takes it, and how many workers there are for it.",
    rows=(Row(title="Queue", panels=_QUEUE), Row(title="Scaling", panels=_SCALING)),
)
