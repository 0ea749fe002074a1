"""For each alert, what Prometheus has scraped when it fires and when it does not, as ``promtool test rules`` reads it.

Values are in promtool's notation: ``0+60x90`` is 0, then 60 more at each of 90 minutes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Scraped = dict[str, str]
"""Values by series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One alert: it fires on ``fires``, with these labels, and does not on ``quiet``."""

    alert: str
    fires: Scraped
    quiet: Scraped
    labels: Mapping[str, str] = field(default_factory=dict)
    at: str = "90m"
    about: str = ""
    """What is tried, where an alert has several cases."""


def _requests(good: int, bad: int) -> Scraped:
    """So many requests a minute, for ninety minutes."""
    return {
        'axon_requests_total{route="chat", outcome="200", tenant="a"}': f"0+{good}x90",
        'axon_requests_total{route="chat", outcome="503", tenant="a"}': f"0+{bad}x90",
    }


def _turns(good: int, bad: int) -> Scraped:
    return {
        'axon_turns_total{model="m", version="v", class="default", outcome="completed"}': f"0+{good}x90",
        'axon_turns_total{model="m", version="v", class="default", outcome="failed"}': f"0+{bad}x90",
    }


def _within(histogram: str, bound: str, good: int, bad: int, tier: str = "default") -> Scraped:
    """So many events a minute within the bound and above it."""
    labels = f'model="m", version="v", class="{tier}"'
    return {
        f'{histogram}_bucket{{{labels}, le="{bound}"}}': f"0+{good}x90",
        f'{histogram}_bucket{{{labels}, le="+Inf"}}': f"0+{good + bad}x90",
        f"{histogram}_count{{{labels}}}": f"0+{good + bad}x90",
    }


TTFT, GAPS = "axon_time_to_first_token_seconds", "axon_inter_token_latency_seconds"
_MENDED = {
    'axon_requests_total{route="chat", outcome="200", tenant="a"}': "0+900x90",
    'axon_requests_total{route="chat", outcome="503", tenant="a"}': "0+100x70 7000x20",
}
"""One in ten failed for 70 minutes, and none in the last 20."""


def _burns(
    alert: str, slo: str, fast: Scraped, medium: Scraped, slow: Scraped, quiet: Scraped, tier: str = ""
) -> list[Case]:
    """One case for each pair of windows; what is quiet for one pair fires the next slower one."""
    more = {"slo": slo, **({"class": tier} if tier else {})}
    return [
        Case(alert=alert, fires=fast, quiet=medium, labels={"burn": "fast", **more}),
        Case(alert=alert, fires=medium, quiet=slow, labels={"burn": "medium", **more}),
        Case(alert=alert, fires=slow, quiet=quiet, labels={"burn": "slow", **more}),
    ]


CASES: list[Case] = [
    *_burns(
        "AxonAvailabilityBurn",
        "availability",
        *(_requests(9_800, 200), _requests(9_920, 80), _requests(9_980, 20), _requests(9_995, 5)),
    ),
    Case(
        alert="AxonAvailabilityBurn",
        fires=_requests(9_000, 1_000),
        quiet=_MENDED,
        labels={"burn": "fast"},
        about="it stops soon after the errors do",
    ),
    *_burns(
        "AxonTurnFailureBurn",
        "turns",
        *(_turns(9_800, 200), _turns(9_920, 80), _turns(9_980, 20), _turns(10_000, 0)),
    ),
    *_burns(
        "AxonFirstTokenBurn",
        "first_token",
        *(_within(TTFT, "2.0", 200, 800), _within(TTFT, "2.0", 600, 400), _within(TTFT, "2.0", 900, 100)),
        _within(TTFT, "2.0", 960, 40),
    ),
    *_burns(
        "AxonTokenGapBurn",
        "token_gap",
        *(_within(GAPS, "0.05", 800, 200), _within(GAPS, "0.05", 900, 100), _within(GAPS, "0.05", 980, 20)),
        _within(GAPS, "0.05", 995, 5),
        tier="default",
    ),
    Case(
        alert="AxonTokenGapBurn",
        fires=_within(GAPS, "0.05", 8, 2, "priority") | _within(GAPS, "0.05", 10_000, 0),
        quiet=_within(GAPS, "0.05", 10, 0, "priority") | _within(GAPS, "0.05", 10_000, 0),
        labels={"burn": "fast", "class": "priority"},
        about="a small class is not hidden by a large one",
    ),
    Case(
        alert="AxonNoReadyWorkers",
        fires={
            'axon_workers{model="m", instance="a"}': "2x60 0x30",
            'axon_workers{model="m", instance="b"}': "2x60 0x30",
        },
        quiet={'axon_workers{model="m", instance="a"}': "2x60 0x30", 'axon_workers{model="m", instance="b"}': "2x90"},
        labels={"model": "m"},
    ),
    Case(
        alert="AxonNoReadyWorkers",
        fires={'axon_workers{model="m"}': "0x90", 'axon_replicas{group="m~b#", state="wanted"}': "1x90"},
        quiet={'axon_workers{model="m"}': "0x90", 'axon_replicas{group="m~b#", state="wanted"}': "0x90"},
        labels={"model": "m"},
        about="a deployment that is scaled to zero is no news",
    ),
    Case(
        alert="AxonEngineRestarts",
        fires={'axon_engine_starts_total{model="m", worker="w"}': "1x80 2 3 4 5 6 7 8 8 8 8"},
        quiet={'axon_engine_starts_total{model="m", worker="w"}': "1x80 2x10"},
        labels={"model": "m", "worker": "w"},
    ),
    Case(
        alert="AxonKVSaturated",
        fires={'axon_kv_usage_ratio{model="m", worker="w"}': "0.5x60 0.97x30"},
        quiet={'axon_kv_usage_ratio{model="m", worker="w"}': "0.5x60 0.97x24 0.9 0.97x5"},
        labels={"model": "m", "worker": "w"},
    ),
    Case(
        alert="AxonUtilizationLow",
        fires={
            'axon_requests_running{model="m", worker="w"}': "10x90",
            'axon_slot_limit{model="m", worker="w"}': "16x90",
            'axon_backlog_requests{model="m"}': "5x90",
        },
        quiet={
            'axon_requests_running{model="m", worker="w"}': "10x90",
            'axon_slot_limit{model="m", worker="w"}': "16x90",
            'axon_backlog_requests{model="m"}': "0x90",
        },
        labels={"model": "m"},
        about="idle slots matter while turns wait",
    ),
    Case(
        alert="AxonUtilizationLow",
        fires={
            'axon_requests_running{model="m", worker="w"}': "10x90",
            'axon_slot_limit{model="m", worker="w"}': "16x90",
            'axon_backlog_requests{model="m"}': "5x90",
        },
        quiet={
            'axon_requests_running{model="m", worker="w"}': "14x90",
            'axon_slot_limit{model="m", worker="w"}': "16x90",
            'axon_backlog_requests{model="m"}': "5x90",
        },
        labels={"model": "m"},
        about="a busy engine may have a backlog",
    ),
    Case(
        alert="AxonBacklogGrowing",
        fires={'axon_backlog_tokens{model="m"}': "0x60 0+1000x30", 'axon_backlog_requests{model="m"}': "0x60 0+2x30"},
        quiet={'axon_backlog_tokens{model="m"}': "0x60 9000x30", 'axon_backlog_requests{model="m"}': "0x60 30x30"},
        labels={"model": "m"},
    ),
    Case(
        alert="AxonHeldJobs",
        fires={'axon_held_jobs{model="m", worker="w"}': "0x70 2x20"},
        quiet={'axon_held_jobs{model="m", worker="w"}': "0x78 2x5 0x7"},
        labels={"model": "m"},
    ),
    Case(
        alert="AxonPoisonJobs",
        fires={'axon_poison_jobs_total{model="m", worker="w"}': "_x85 1x5"},
        quiet={'axon_poison_jobs_total{model="m", worker="w"}': "1x90"},
        labels={"model": "m"},
    ),
    Case(
        alert="AxonDeadLetters",
        fires={"axon_dead_letters_total": "0x80 2x10"},
        quiet={"axon_dead_letters_total": "2x90"},
    ),
    Case(
        alert="AxonFencedWrites",
        fires={"axon_fenced_writes_total": "0x75 0+1x15"},
        quiet={"axon_fenced_writes_total": "0x87 1x3"},
    ),
    Case(
        alert="AxonPinConflicts",
        fires={'axon_pin_conflicts_total{kind="asked"}': "_x80 1x10"},
        quiet={'axon_pin_conflicts_total{kind="asked"}': "3x90"},
        labels={"kind": "asked"},
    ),
    Case(
        alert="AxonRolloutStuck",
        fires={'axon_rollout_stuck_seconds{model="m", version="m@v2"}': "0x50 0+60x40"},
        quiet={'axon_rollout_stuck_seconds{model="m", version="m@v2"}': "0x70 0+60x20"},
        labels={"model": "m", "version": "m@v2"},
    ),
    Case(
        alert="AxonNoLeader",
        fires={'axon_leads{instance="a"}': "1x80 0x10", 'axon_leads{instance="b"}': "0x90"},
        quiet={'axon_leads{instance="a"}': "1x80 0x10", 'axon_leads{instance="b"}': "0x80 1x10"},
    ),
    Case(
        alert="AxonWalLag",
        fires={"axon_wal_oldest_seconds": "1x80 10+60x10"},
        quiet={"axon_wal_oldest_seconds": "1x80 70 20 1 50x7"},
    ),
    Case(
        alert="AxonDependencyDown",
        fires={
            'axon_dependency_up{dep="store", instance="a"}': "1x80 0x10",
            'axon_dependency_up{dep="store", instance="b"}': "1x90",
        },
        quiet={
            'axon_dependency_up{dep="store", instance="a"}': "1x89 0",
            'axon_dependency_up{dep="store", instance="b"}': "1x90",
        },
        labels={"dep": "store"},
    ),
    Case(
        alert="AxonMetricsAbsent",
        fires={"axon_build_info": "1x70 stale"},
        quiet={'axon_build_info{instance="a"}': "1x70 stale", 'axon_build_info{instance="b"}': "1x90"},
    ),
    Case(
        alert="AxonProcessDown",
        fires={'up{job="axon-worker", instance="a"}': "1x80 0x10"},
        quiet={'up{job="axon-worker", instance="a"}': "1x80 0x2 1x8"},
        labels={"instance": "a"},
    ),
]
