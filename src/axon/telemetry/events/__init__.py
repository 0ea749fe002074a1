"""The table of log events: every event that Axon writes, with its sentence, levels and fields.

``docs/logs.md`` and the index template in ``deploy/observability`` are written from it, and a test compares it with
every call of a logger. To add an event, add it here.
"""

from axon.telemetry.events.control import CONTROL
from axon.telemetry.events.event import Event
from axon.telemetry.events.gateway import GATEWAY
from axon.telemetry.events.process import PROCESS
from axon.telemetry.events.worker import WORKER

ROOMS: dict[str, tuple[Event, ...]] = {
    "Every process": PROCESS,
    "Gateway": GATEWAY,
    "Worker and engine": WORKER,
    "Control": CONTROL,
}
"""Events by who writes them."""

EVENTS: dict[str, Event] = {each.name: each for room in ROOMS.values() for each in room}
"""Every event by its name."""
