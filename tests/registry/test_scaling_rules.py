"""Settings of an autoscaler that cannot hold are refused by the name of the field."""

from dataclasses import replace
from typing import Any

import pytest

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.scaling import Scaling, Window
from axon.errors import InvalidInput
from axon.registry.scaling_rules import check_scaling

SMALL = Deployment(name="small", model="small", created=1.0, min_replicas=2, max_replicas=8)
NAN = float("nan")


@pytest.mark.parametrize(
    ("param", "changes"),
    [
        ("utilisation", {"utilisation": 1.0}),
        ("utilisation", {"utilisation": NAN}),
        ("target_wait_s", {"target_wait_s": -1.0}),
        ("ttft_target_s", {"ttft_target_s": 1e9}),
        ("itl_target_s", {"itl_target_s": NAN}),
        ("price_per_h", {"price_per_h": -1.0}),
        ("price_per_h", {"cost_per_h": 10.0}),
        ("cost_per_h", {"price_per_h": 3.0, "cost_per_h": 5.0}),
        ("cost_per_h", {"price_per_h": 1.0, "cost_per_h": 5.0, "floors": (Window(replicas=6),)}),
        ("floors", {"floors": (Window(replicas=1),) * 17}),
        ("floors.replicas", {"floors": (Window(replicas=9),)}),
        ("floors.replicas", {"floors": (Window(replicas=0),)}),
        ("floors.start", {"floors": (Window(replicas=1, start="8:00"),)}),
        ("floors.start", {"floors": (Window(replicas=1, start="24:00", end="01:00"),)}),
        ("floors.end", {"floors": (Window(replicas=1, start="08:00", end="24:01"),)}),
        ("floors.end", {"floors": (Window(replicas=1, start="08:00", end="08:00"),)}),
        ("floors.days", {"floors": (Window(replicas=1, days=("monday",)),)}),
        ("floors.days", {"floors": (Window(replicas=1, days=("mon", "mon")),)}),
        ("floors.zone", {"floors": (Window(replicas=1, zone="Mars/Olympus"),)}),
        ("floors.zone", {"floors": (Window(replicas=1, zone="../../etc/passwd"),)}),
    ],
)
def test_what_cannot_hold_is_refused_by_its_field(param: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_scaling(replace(SMALL, scaling=Scaling(**changes)))
    assert refused.value.param == f"scaling.{param}"


def test_what_can_hold_passes() -> None:
    floors = (Window(replicas=8, start="22:00", end="06:00", days=("sat", "sun"), zone="America/New_York"),)
    check_scaling(SMALL)
    check_scaling(replace(SMALL, scaling=Scaling(utilisation=0.6, price_per_h=2.0, cost_per_h=16.0, floors=floors)))
