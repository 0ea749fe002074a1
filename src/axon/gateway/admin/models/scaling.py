"""The body of a deployment's autoscaler under /v1/admin/deployments. Knows no route; the registry's rules check it."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from axon.domain.registry.scaling import Scaling, Window
from axon.gateway.admin.bodies import AdminWire
from axon.gateway.http.body import Many


class FloorBody(AdminWire):
    """A minimum by the clock."""

    replicas: int
    """Workers that serve the deployment at least while it holds."""
    start: str = "00:00"
    """Local time at which it begins to hold, as HH:MM."""
    end: str = "24:00"
    """Local time at which it ends; one that is not after ``start`` is of the next day."""
    days: Annotated[Many[str], Field(max_length=7)] = Field(default_factory=list)
    """Days of the week on which it begins, such as ``mon``; none for every day."""
    zone: str = "UTC"
    """Time zone by its IANA name, such as ``Europe/Berlin``."""


class ScalingBody(AdminWire):
    """What a deployment's autoscaler aims at and may spend; fields that it does not have stay as they are."""

    utilisation: float | None = None
    """Part of the slots that shall be in use, 0.1 to 0.94; 0 for control's own aim, 0.75."""
    target_wait_s: float | None = None
    """Seconds in which a waiting request shall be taken; 0 for ``control.target_wait_s``."""
    ttft_target_s: float | None = None
    """Seconds to the first token; 0 for ``control.ttft_target_s``."""
    itl_target_s: float | None = None
    """Seconds between two tokens; 0 for ``control.itl_target_s``."""
    price_per_h: float | None = None
    """Price of one replica for an hour: for the ceiling, and for what tenants pay for replicas' time."""
    currency: str | None = None
    """Currency of the price, three capital letters; USD unless you say so."""
    cost_per_h: float | None = None
    """Ceiling of what its replicas may cost in an hour together; 0 for none."""
    floors: Annotated[Many[FloorBody], Field(max_length=16)] | None = None
    """Minimums by the clock, in place of those that it has; the largest that holds counts."""

    def over(self, scaling: Scaling) -> Scaling:
        """Returns ``scaling`` with what the body names."""
        said = self.model_dump(exclude_none=True, exclude={"floors"})
        if self.floors is not None:
            said["floors"] = tuple(_window(each) for each in self.floors)
        return replace(scaling, **said)


def _window(floor: FloorBody) -> Window:
    return Window(replicas=floor.replicas, start=floor.start, end=floor.end, days=tuple(floor.days), zone=floor.zone)
