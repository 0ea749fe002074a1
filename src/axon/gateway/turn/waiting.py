"""Tells a client how its turn waits for a worker to start, in the headers of its answer. Knows no API's body."""

from starlette.requests import Request

from axon.gateway.offers.wait import Wait
from axon.gateway.turn.context import gateway_of
from axon.gateway.turn.entry import Entry

STATE_HEADER = "x-axon-state"
"""Response header: ``cold`` or ``loading`` if the model had no worker when the turn was accepted, ``ready`` if it had
too few."""
POSITION_HEADER = "x-axon-queue-position"
"""Response header: the turn's position in the line then, from 1 on."""
EXPECTED_HEADER = "x-axon-expected-wait-s"
"""Response header: seconds that the turn was likely to wait then; missing while nobody knows."""


async def wait_of(request: Request, entry: Entry) -> Wait | None:
    """How the request's turn waits for a worker to start; None if it does not."""
    gateway, job = gateway_of(request), entry.job
    if not job.queued:
        return None
    if entry.is_new:
        return gateway.offers.wait_of(job, is_new=True)
    if (entry.found is not None and entry.found.state.terminal) or await gateway.sessions.lookup.is_claimed(job.id):
        return None
    return gateway.offers.wait_of(job)


def wait_headers(wait: Wait | None) -> dict[str, str]:
    """The headers that tell it; none for a turn that does not wait for a worker to start."""
    if wait is None:
        return {}
    expected = {} if wait.expected_s is None else {EXPECTED_HEADER: f"{wait.expected_s:.1f}"}
    return {STATE_HEADER: wait.state.value, POSITION_HEADER: str(wait.position), **expected}


def wait_body(wait: Wait) -> dict[str, object]:
    """The same as JSON, for the field ``axon.queue``."""
    expected_s = None if wait.expected_s is None else round(wait.expected_s, 1)
    return {"state": wait.state.value, "position": wait.position, "expected_wait_s": expected_s}
