"""What the reconciler sees and orders becomes metrics."""

from types import SimpleNamespace
from typing import Any

from axon.bootstrap.control.launching import MeasuredFleet
from axon.domain.fleet.reconcile import Stop
from axon.domain.fleet.replica import Group, LaunchState
from axon.telemetry.metrics import Metrics


def test_replicas_and_orders_are_shown() -> None:
    metrics = Metrics()
    measured = MeasuredFleet(metrics)
    group = Group("small", pool="gold")
    decided: Any = SimpleNamespace(
        groups=[SimpleNamespace(group=group, wanted=3, starting=1, ready=2, draining=0)],
    )
    launched: Any = [SimpleNamespace(state=LaunchState.WAITING), SimpleNamespace(state=LaunchState.RUNNING)]
    measured.looked(decided, launched)
    stop = Stop(name=group.replica(1), incarnation="i", reason="too many")
    measured.ordered(stop, "")
    measured.ordered(stop, "The launcher is away.")

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    states = {each: value("axon_replicas", group=str(group), state=each) for each in ("wanted", "starting", "ready")}
    assert states == {"wanted": 3, "starting": 1, "ready": 2}
    assert value("axon_replicas_waiting") == 1
    assert value("axon_fleet_orders_total", action="stop", result="taken") == 1
    assert value("axon_fleet_orders_total", action="stop", result="failed") == 1
