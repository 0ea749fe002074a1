"""What control finds becomes gauges: figures of the queue and the store, decisions, rollouts."""

from dataclasses import replace

import pytest

from axon.bootstrap.control.gauges import ShownFigures, ShownRollouts, lanes_of, signal_of
from axon.domain.census import Census
from axon.domain.fleet.replica import Group
from axon.domain.registry.rollout import RolloutState
from axon.ports.journal import Pending
from axon.runtime.clock import FakeClock
from axon.settings import Settings
from axon.telemetry.metrics import Metrics
from tests.contracts.builders import make_presence
from tests.domain.registry.builders import deployment, rollout, snapshot

NEW = {"model": "small", "version": "small@v2"}


def test_figures_are_shown_and_hidden_when_another_leads() -> None:
    metrics = Metrics("vllm")
    shown = ShownFigures(metrics)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    shown.backlog("small", 3, 300.4)
    shown.census(Census(active_sessions=1, sessions=5, batches={"in_progress": 2}, files={"batch": 4}))
    shown.pending(Pending(num_records=7, oldest_s=1.5, num_bytes=900))
    assert (value("axon_backlog_requests", model="small"), value("axon_backlog_tokens", model="small")) == (3, 300)
    assert value("vllm:num_requests_waiting", model_name="small", engine="0") == 3
    assert (value("axon_sessions", state="active"), value("axon_sessions", state="idle")) == (1, 4)
    assert (value("axon_batches", state="in_progress"), value("axon_files", purpose="batch")) == (2, 4)
    assert (value("axon_wal_pending_records"), value("axon_wal_oldest_seconds"), value("axon_wal_bytes")) == (
        7,
        1.5,
        900,
    )
    shown.hide_backlog()
    shown.hide_census()
    assert value("axon_backlog_requests", model="small") is None
    assert value("axon_sessions", state="active") is None
    assert value("vllm:num_requests_waiting", model_name="small", engine="0") == 0


def test_a_purpose_without_files_is_not_shown_any_more() -> None:
    metrics = Metrics()
    for files in ({"batch": 4}, {"batch_output": 1}):
        ShownFigures(metrics).census(Census(active_sessions=0, sessions=0, batches={}, files=files))
    assert metrics.registry.get_sample_value("axon_files", {"purpose": "batch"}) is None
    assert metrics.registry.get_sample_value("axon_files", {"purpose": "batch_output"}) == 1


@pytest.mark.parametrize(("before", "after", "direction"), [(1, 3, "up"), (3, 1, "down"), (2, 2, "hold")])
def test_decisions_are_counted_by_direction(before: int, after: int, direction: str) -> None:
    metrics = Metrics()
    ShownFigures(metrics).decided(Group("small"), before, after, "backlog of 900 tokens: 3 suffice")
    labels = {"group": "small#", "direction": direction, "reason": "backlog of tokens"}
    assert metrics.registry.get_sample_value("axon_scaling_decisions_total", labels) == 1


@pytest.mark.parametrize(
    ("reason", "signal"),
    [
        ("expected load of 2.31 busy replicas at 70%", "expected load of busy replicas at"),
        ("demand is unknown: no change", "demand is unknown"),
        ("", ""),
    ],
)
def test_a_signal_has_no_figures(reason: str, signal: str) -> None:
    assert signal_of(reason) == signal


def test_a_rollout_that_cannot_go_on_is_stuck_from_the_first_look_on() -> None:
    metrics, clock = Metrics(), FakeClock()
    shown = ShownRollouts(metrics, clock)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"axon_rollout_{name}", {**NEW, **labels})

    waiting = replace(rollout(state=RolloutState.WAITING), reason="no worker with small@v2 in the shared pool")
    for reason in (waiting.reason, "its golden prompts are being asked"):
        shown.looked(snapshot(deployment(going=replace(waiting, reason=reason))))
        clock.advance(5.0)
    assert value("stuck_seconds") == 5.0
    assert (value("state", state="waiting"), value("state", state="running")) == (1, 0)
    shown.looked(snapshot(deployment(going=rollout())))
    for outcome in ("promoted", "aborted"):
        assert metrics.registry.get_sample_value("axon_rollouts_ended_total", {**NEW, "outcome": outcome}) == 0
    assert (value("stuck_seconds"), value("share_ratio"), value("step")) == (0, 0.5, 1)
    shown.looked(snapshot(deployment()))
    assert value("stuck_seconds") is None
    shown.looked(snapshot(deployment(going=waiting)))
    shown.hide()
    assert value("stuck_seconds") is None
    shown.ended("small", "small@v2", "aborted")
    ended = {**NEW, "outcome": "aborted"}
    assert metrics.registry.get_sample_value("axon_rollouts_ended_total", ended) == 1


def test_lanes_are_those_of_the_registry_and_else_of_the_pools_that_have_workers() -> None:
    settings, there = Settings(), {"small": [], "own": [replace(make_presence(), pool="gold")]}
    lanes = lanes_of(settings, snapshot(deployment()), there)
    assert {lane.partition("/")[0] for lane in lanes["small"]} == {"small", "small:b"}
    assert {lane.partition("/")[0] for lane in lanes["own"]} == {"own", "own#gold"}
