"""The history that a response continues or begins: a conversation's, or an earlier response's. Renders no prompt."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from starlette.requests import Request

from axon.domain.ids import new_id
from axon.domain.session.conversation import PREFIX, History
from axon.domain.tenants.storage import Stored
from axon.errors import AxonError, InvalidInput, NotCompleted, NotFound
from axon.gateway.responses.requests import Context, ResponseRequest
from axon.gateway.turn.context import Gateway, gateway_of, identity_of
from axon.gateway.turn.entry import Entry

BUSY_HEADER = "x-axon-when-busy"
"""Request header: ``wait`` or ``refuse``, for when an earlier turn of the same session still runs."""
BRANCH_HEADER = "x-axon-branch-of"
"""Request header: id of the conversation from whose start the response branches off. It has none of its history."""


async def history_of(request: Request, ask: ResponseRequest, job_id: str, held: AsyncExitStack) -> History:
    """Returns the history that the new turn continues.

    In a conversation, ``held`` keeps its lock until the turn is accepted, so that two turns cannot take one ordinal.
    """
    gateway, tenant = gateway_of(request), identity_of(request).tenant
    histories, wait_s = gateway.sessions.histories, _busy_wait_s(request)
    if ask.conversation_id:
        return await histories.enter(held, tenant, ask.conversation_id, job_id, wait_s=wait_s)
    if not ask.previous_response_id:
        if root := branch_of(request, ask):
            await histories.require(tenant, root)
        if ask.begins is not None:
            return History(session=new_id(PREFIX, gateway.clock.now()))
        return History(session=job_id)
    history = await _before(gateway, tenant, ask.previous_response_id, wait_s=wait_s)
    return await histories.go_on(tenant, history, job_id) if ask.stored else history


@asynccontextmanager
async def begun(request: Request, ask: ResponseRequest, entry: Entry, session: str) -> AsyncIterator[None]:
    """Stores the conversation ``session`` that the response begins, if it does, while the block accepts the turn.

    If the turn is not accepted, the conversation is taken back. The conversation's lock is held meanwhile, so that no
    turn of another request can be its first one.
    """
    if ask.begins is None:
        yield
        return
    gateway, who = gateway_of(request), identity_of(request)
    conversations, histories = gateway.sessions.conversations, gateway.sessions.histories
    async with (
        gateway.quota.room(who.tenant, who.terms, Stored(num_objects=1)),  # its bytes are the request's
        await histories.lock(session, wait_s=0.0),
    ):
        try:
            await conversations.begin(who.tenant, session, ask.begins, entry.id)
            yield
        finally:
            first = entry.job if entry.is_accepted else await entry.twin()
            if first is None or first.session != session:
                with suppress(AxonError):  # then it is empty until it is erased like any other
                    await conversations.take_back(session)


async def begun_again(request: Request, ask: ResponseRequest, entry: Entry) -> None:
    """Stores the conversation of a repeated request's turn if it is not there: the first request may have taken it back
    because nobody could tell it that its turn was accepted."""
    if ask.begins is not None and not entry.is_new:
        tenant, conversations = identity_of(request).tenant, gateway_of(request).sessions.conversations
        try:
            await conversations.get(tenant, entry.job.session)
        except NotFound:
            await conversations.begin(tenant, entry.job.session, ask.begins, entry.id)


def branch_of(request: Request, ask: Context) -> str:
    """Returns the conversation from whose start the response branches off; empty if it does not."""
    root = request.headers.get(BRANCH_HEADER, "")
    if root and (ask.conversation or ask.previous_response_id):
        raise InvalidInput(
            f"{BRANCH_HEADER} begins at a conversation's start, so neither 'conversation' nor 'previous_response_id' "
            "can be used with it.",
            param=BRANCH_HEADER,
            code="mutually_exclusive_parameters",
        )
    return root


async def peek(request: Request, ask: Context) -> History:
    """Returns the history that a request would continue, without a lock and without a new turn in it."""
    gateway, tenant = gateway_of(request), identity_of(request).tenant
    if ask.conversation_id:
        return await gateway.sessions.histories.peek(tenant, ask.conversation_id)
    if ask.previous_response_id:
        return await _before(gateway, tenant, ask.previous_response_id, wait_s=_busy_wait_s(request))
    return History(session="")


async def _before(gateway: Gateway, tenant: str, previous_id: str, *, wait_s: float) -> History:
    """Returns the history up to and including the response that a request continues."""
    param = "previous_response_id"
    try:
        return await gateway.sessions.histories.of_turn(tenant, previous_id, wait_s=wait_s)
    except NotFound:
        message = f"Previous response with id '{previous_id}' not found."
        raise InvalidInput(message, code="previous_response_not_found", param=param) from None
    except NotCompleted as error:
        raise InvalidInput(error.message, code="previous_response_not_completed", param=param) from None


def _busy_wait_s(request: Request) -> float:
    """Returns the seconds to wait for an earlier turn of the session to end."""
    match request.headers.get(BUSY_HEADER, "wait"):
        case "wait":
            return gateway_of(request).sessions_config.busy_wait_s
        case "refuse":
            return 0.0
    raise InvalidInput(f"{BUSY_HEADER} must be 'wait' or 'refuse'.", param=BUSY_HEADER)
