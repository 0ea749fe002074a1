"""The job of an admitted turn: what the client asked for, within its tenant's terms. Knows no API."""

from dataclasses import replace

from starlette.requests import Request

from axon.domain.job import Job
from axon.errors import Expired
from axon.gateway.http.middleware import REQUEST_ID
from axon.gateway.http.tracing import trace_of_job
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.context import gateway_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.target import Target
from axon.sessions.new_job import Destination, Work, make_job

DEADLINE = "axon.deadline"
"""Key of the ASGI scope under which the time is kept (Unix time in seconds) by which the client wants its answer, where
it names one."""


def job_of(request: Request, entry: Entry, target: Target, work: Work) -> Job:
    """Returns the job of an entry: what the client asked for, within its tenant's terms. Raises ``Expired`` if the
    client's own deadline has passed."""
    gateway, ask = gateway_of(request), entry.ask
    trace, tracestate = trace_of_job(request.scope, request.headers, entry.id)
    job = make_job(
        entry.id,
        ask.tenant,
        work,
        _destination(target, ask),
        now=entry.now,
        timeout_s=_timeout_s(request, entry.now, gateway.sessions_config.turn_timeout_s + target.patience_s),
        terms=ask.terms,
        tier=ask.tier,
        reader_grace_s=ask.reader_grace_s,
        retain=ask.keeps,
        trace=trace,
    )
    return replace(job, tracestate=tracestate, request=request.scope.get(REQUEST_ID, ""))


def _destination(target: Target, ask: Ask) -> Destination:
    return Destination(
        served=target.served,
        num_lanes=target.deployment.num_lanes,
        letter=target.letter,
        pool=ask.pool,
        pin=target.key,
        generation=target.pin.generation,
        moved=target.moved,
        price=target.price,
        adapter=target.adapter,
        fallback=target.fallback,
        queued=max(1, ask.meters.line.waiting) if target.awaits_worker else 0,
    )


def _timeout_s(request: Request, now: float, longest_s: float) -> float:
    """Returns the seconds that the turn has: those that the server allows, or fewer if the client's deadline comes
    before."""
    deadline: float | None = request.scope.get(DEADLINE)
    if deadline is None:
        return longest_s
    if deadline <= now:
        raise Expired()
    return min(longest_s, deadline - now)
