"""Routes of /v1/batches: create, list, retrieve and cancel. Knows no line of a batch: the runner reads them."""

from dataclasses import replace
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from axon.domain.batch import Batch, BatchState, LineProblem, cancelled
from axon.domain.file import Purpose
from axon.domain.ids import new_id
from axon.domain.tenants.key import Scope
from axon.errors import Conflict, InvalidInput, LimitReached, NotFound
from axon.gateway.batches.endpoints import ENDPOINTS
from axon.gateway.batches.files import find_file
from axon.gateway.batches.room import room_of
from axon.gateway.http.body import Wire
from axon.gateway.http.paging import DEFAULT_LIMIT, Look, cursor, limit_of, listed
from axon.gateway.http.schema import body_of_kind
from axon.gateway.responses.requests import Metadata
from axon.gateway.turn.body import read_body
from axon.gateway.turn.context import gateway_of, identity_of
from axon.gateway.turn.counting import count_request

router = APIRouter(tags=["batches"], prefix="/v1/batches")

_RETRY_S = 10.0
_PREFIX = "batch_"
_TRIES = 10
_TIMES = (
    BatchState.IN_PROGRESS,
    BatchState.FINALIZING,
    BatchState.COMPLETED,
    BatchState.FAILED,
    BatchState.EXPIRED,
    BatchState.CANCELLING,
    BatchState.CANCELLED,
)


class BatchRequest(Wire):
    """Body of POST /v1/batches."""

    input_file_id: str = Field(min_length=1, max_length=128)
    """A file of purpose ``batch``: JSON Lines of ``custom_id``, ``method``, ``url`` and ``body``."""
    endpoint: str
    """The API that answers every line: ``/v1/chat/completions``, ``/v1/completions``, ``/v1/responses`` or
    ``/v1/embeddings``."""
    completion_window: Literal["24h"]
    metadata: Metadata | None = None


@router.post("", openapi_extra=body_of_kind(BatchRequest), summary="Create a batch")
async def create(request: Request) -> dict[str, Any]:
    """Creates a batch over an uploaded file. Its lines are all checked before the first one is asked."""
    gateway, room, who = gateway_of(request), room_of(request), identity_of(request)
    _, ask = await read_body(request, BatchRequest)
    if ask.endpoint not in ENDPOINTS:
        known = ", ".join(f"'{each}'" for each in ENDPOINTS)
        raise InvalidInput(f"'endpoint' must be one of {known}.", param="endpoint")
    await count_request(request)
    file = await find_file(request, ask.input_file_id, param="input_file_id")
    if file.purpose is not Purpose.BATCH:
        raise InvalidInput("'input_file_id' must name a file of purpose 'batch'.", param="input_file_id")
    now = gateway.clock.now()
    batch = Batch(
        id=new_id(_PREFIX, now),
        tenant=who.tenant,
        endpoint=ask.endpoint,
        input_file_id=file.id,
        created_at=now,
        expires_at=now + room.config.window_s,
        metadata=ask.metadata,
        names_versions=Scope.VERSIONS in who.scopes,
    )
    if not await room.batches.add(batch, max_active=room.config.max_active):
        raise LimitReached(
            f"{room.config.max_active} batches of yours run or wait, which is the limit.",
            code="batch_limit",
            retry_after_s=_RETRY_S,
        )
    room.wake()
    return batch_body(batch)


@router.get("", summary="List batches")
async def index(request: Request, after: str = "", limit: str = DEFAULT_LIMIT) -> dict[str, Any]:
    """Lists the tenant's batches page by page, the newest first."""
    await count_request(request)
    num = limit_of(limit)
    past = cursor(after, _PREFIX)
    found = await room_of(request).batches.page(identity_of(request).tenant, after=past, limit=num + 1)
    shown = [await _counted(request, batch) for batch in found[:num]]
    return listed(shown, _BATCH, has_more=len(found) > num)


@router.get("/{batch_id}", summary="Retrieve a batch")
async def show(request: Request, batch_id: str) -> dict[str, Any]:
    """Returns the batch as it is now, with the number of its lines that are done."""
    return batch_body(await _counted(request, await _find(request, batch_id)))


@router.post("/{batch_id}/cancel", summary="Cancel a batch")
async def cancel(request: Request, batch_id: str) -> dict[str, Any]:
    """Cancels a batch: its running lines are cancelled, and what is done is kept in its output file."""
    room, clock = room_of(request), gateway_of(request).clock
    for _ in range(_TRIES):
        batch = await _find(request, batch_id)
        new = cancelled(batch, clock.now())
        if new is batch and batch.state is not BatchState.CANCELLING and batch.state is not BatchState.CANCELLED:
            raise Conflict(f"Cannot cancel a batch with status '{batch.state}'.", code="batch_not_cancellable")
        if new is batch or await room.batches.change(batch, new):
            room.wake()
            return batch_body(await _counted(request, new))
    raise Conflict("The batch changes too often; try again.", code="batch_changed")


async def _find(request: Request, batch_id: str) -> Batch:
    """Returns a batch of the caller's own tenant; raises the same ``NotFound`` for any other id."""
    batch = await room_of(request).batches.get(batch_id)
    if batch is None or batch.tenant != identity_of(request).tenant:
        raise NotFound(f"No batch found with id '{batch_id}'.", code="batch_not_found", param="batch_id")
    return batch


async def _counted(request: Request, batch: Batch) -> Batch:
    """The batch with the counts of the results that it has now."""
    if batch.state.terminal or not batch.total:
        return batch
    completed, failed = await room_of(request).batches.count(batch.id)
    return replace(batch, completed=completed, failed=failed)


def batch_body(batch: Batch) -> dict[str, Any]:
    """Returns a batch as OpenAI's object."""
    times = {f"{state}_at": _seconds(batch.reached.get(str(state))) for state in _TIMES}
    errors = {"object": "list", "data": [_problem_body(each) for each in batch.problems]} if batch.problems else None
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "errors": errors,
        "input_file_id": batch.input_file_id,
        "completion_window": batch.window,
        "status": str(batch.state),
        "output_file_id": batch.output_file_id or None,
        "error_file_id": batch.error_file_id or None,
        "created_at": int(batch.created_at),
        "expires_at": int(batch.expires_at),
        **times,
        "request_counts": {"total": batch.total, "completed": batch.completed, "failed": batch.failed},
        "metadata": dict(batch.metadata) if batch.metadata is not None else None,
    }


_BATCH = Look(lambda batch: batch.id, batch_body)


def _problem_body(problem: LineProblem) -> dict[str, Any]:
    return {"line": problem.line, "code": problem.code, "message": problem.message, "param": problem.param}


def _seconds(at: float | None) -> int | None:
    return None if at is None else int(at)
