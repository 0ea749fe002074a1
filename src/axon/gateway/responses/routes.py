"""Routes of /v1/responses: turns whose history the server stores. Knows no queue and no engine."""

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from enum import Enum, auto
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.content.item import Item
from axon.domain.content.tool import Toolbox
from axon.domain.job import Job
from axon.domain.reply import ResponseReply
from axon.domain.session.conversation import History
from axon.domain.turn import Turn, ended, opened
from axon.gateway.directive import Directives
from axon.gateway.directives import RESPONSES
from axon.gateway.http.body import Wire
from axon.gateway.http.errors import Gone
from axon.gateway.http.paging import DEFAULT_LIMIT, page_of
from axon.gateway.http.schema import body_of_kind
from axon.gateway.offers.offers import Wanted
from axon.gateway.offers.wait import Wait
from axon.gateway.openai.formats import grammar_of
from axon.gateway.openai.outcome import failure
from axon.gateway.openai.sentences import blaming
from axon.gateway.responses import events
from axon.gateway.responses.body import response_body
from axon.gateway.responses.finding import find, resumed
from axon.gateway.responses.history import begun, begun_again, branch_of, history_of, peek
from axon.gateway.responses.items import ITEM, check_results, items_of, messages_of
from axon.gateway.responses.requests import Context, ResponseRequest
from axon.gateway.responses.tools import choice_text, tools_text
from axon.gateway.turn.asking import Api, admitted
from axon.gateway.turn.body import read_body
from axon.gateway.turn.calling import planned
from axon.gateway.turn.cancel import stopped
from axon.gateway.turn.context import find_model, gateway_of, identity_of
from axon.gateway.turn.counting import count_request, note_erased
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import STREAM_HEADER, wants_ledger
from axon.gateway.turn.job import job_of
from axon.gateway.turn.sse import StreamStart, stream
from axon.gateway.turn.target import target_of
from axon.gateway.turn.waiting import wait_body, wait_headers, wait_of
from axon.gateway.turn.whole import answered
from axon.sessions.conversations import require_room
from axon.sessions.new_job import Work
from axon.sessions.prompt import Prompts
from axon.sessions.window import cuts, fitted
from axon.text.grammar import Grammar
from axon.text.tools.plan import CallPlan, plan_of

router = APIRouter(tags=["responses"])
_RESPONSE = Api("response", "resp_")

_MAX_WINDOWS = 8
"""Input tokens are counted up to this many times the model's context window."""


@router.post("/v1/responses", openapi_extra=body_of_kind(ResponseRequest), summary="Create a response")
async def create(request: Request) -> Response:
    """Returns the model's answer, whole, streamed or in the background.

    The answer is stored unless ``store`` is false, so that a later response can continue from it.
    """
    entry, form = await _read_and_accepted(request)
    return await _answer(request, entry, form)


async def _read_and_accepted(request: Request) -> tuple[Entry, "_Form"]:
    """Returns what ``accepted`` returns for the request's body, and the form of its answer."""
    entry, ask = await accepted(request, await gateway_of(request).bodies.read(request), ResponseRequest, RESPONSES)
    return entry, _form(ask)


async def accepted(
    request: Request, body: bytes, kind: type[ResponseRequest], directives: Directives
) -> tuple[Entry, ResponseRequest]:
    """Returns the entry of the accepted turn, and what it was asked with. The body is not held any longer."""
    gateway = gateway_of(request)
    ask = await gateway.bodies.parse(kind, body, directives.refused, directives.notes)
    ask.check()
    items, toolbox = items_of(ask.input or [], now=gateway.clock.now()), ask.toolbox
    wanted = find_model(request, ask.model, with_fallbacks=True)
    streams, keeps = ask.streams, ask.stored
    async with (
        AsyncExitStack() as held,
        admitted(request, body, _RESPONSE, wanted, tier=ask.tier, keeps=keeps, streams=streams) as entry,
    ):
        if entry.is_new:
            grammar = await grammar_of(gateway.grammars.of(identity_of(request).tenant), ask.form)
            history = await history_of(request, ask, entry.id, held)
            require_room(history, items)
            check_results((*history.items, *items))
            job = await _job(request, ask, toolbox, entry, wanted, history, items, grammar)
            async with begun(request, ask, entry, history.session):
                await entry.accept(job)
    if entry.job.purged:
        raise Gone("The answer to this repeated request is not kept any more.", code="response_erased")
    await begun_again(request, ask, entry)
    return entry, ask


@router.post(
    "/v1/responses/input_tokens", openapi_extra=body_of_kind(Context), summary="Count the tokens of a response's input"
)
async def count(request: Request) -> dict[str, Any]:
    """Counts the tokens of the prompt, history and instructions included.

    With ``truncation: auto`` it counts what is left after truncation to the context window; otherwise it counts
    everything, even if that does not fit.
    """
    _, ask = await read_body(request, Context, RESPONSES)
    ask.check()
    toolbox = ask.toolbox
    offer = find_model(request, ask.model).offer
    prompts = (await offer.prompts(offer.deployment.stable)).with_options(ask.template_options)
    await count_request(request)
    history = await peek(request, ask)
    items = (*history.items, *items_of(ask.input or [], now=gateway_of(request).clock.now()))
    check_results(items)
    plan = plan_of(toolbox, prompts.dialect(offer.served(offer.deployment.stable).call_format))
    with blaming("input", "max_output_tokens"):
        if ask.truncation == "auto":
            ids = await _fitted(prompts, ask, items, plan)
        else:
            messages = messages_of(ask.instructions, items)
            ids = await prompts.unchecked(messages, tools=plan.tools, dialect=plan.dialect, max_windows=_MAX_WINDOWS)
    return {"object": "response.input_tokens", "input_tokens": len(ids)}


@router.get("/v1/responses/{response_id}", summary="Retrieve a response, or continue its stream")
async def show(request: Request, response_id: str, stream: str = "false", starting_after: str = "") -> Response:
    """Returns the response as it is now. With ``stream=true`` it streams the events past number ``starting_after``.

    A number past the last event of a complete response is refused with 400.
    """
    if stream.lower() not in ("true", "1"):
        return await _object(request, await find(request, response_id))
    turn, after = await resumed(request, response_id, starting_after)
    return _stream(request, StreamStart(job=turn.job, after=after, found=turn))


@router.delete("/v1/responses/{response_id}", summary="Delete a response")
async def delete(request: Request, response_id: str) -> dict[str, Any]:
    """Deletes the response and all its text; a response that runs is cancelled."""
    turn = await find(request, response_id)
    await gateway_of(request).sessions.erasure.turn(turn)
    note_erased(request)
    return {"id": response_id, "object": "response", "deleted": True}


@router.post("/v1/responses/{response_id}/cancel", summary="Cancel a response")
async def cancel(request: Request, response_id: str) -> Response:
    """Cancels a response that runs; one that has ended stays as it is.

    A response that takes more than a few seconds to stop is returned as it is then.
    """
    turn = await find(request, response_id, unstored=True)
    return await _object(request, await stopped(gateway_of(request), turn))


@router.get("/v1/responses/{response_id}/input_items", summary="List a response's input items")
async def input_items(
    request: Request, response_id: str, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "desc"
) -> dict[str, Any]:
    """Lists the response's own input items page by page, by default the newest first."""
    turn = await find(request, response_id)
    return page_of(turn.job.items, ITEM, after=after, limit=limit, order=order)


async def _job(
    request: Request,
    ask: ResponseRequest,
    toolbox: Toolbox,
    entry: Entry,
    wanted: Wanted,
    history: History,
    items: tuple[Item, ...],
    grammar: Grammar | None,
) -> Job:
    """Returns the job of a response, with its prompt and its ordinal in its session."""
    with blaming("input", "max_output_tokens"):
        target = await target_of(
            request,
            entry,
            wanted,
            session=history.session if ask.stored else "",
            is_first=history.session == entry.id or ask.begins is not None,
            prompt_cache_key=ask.prompt_cache_key,
        )
        grammars = gateway_of(request).grammars.of(identity_of(request).tenant)
        plan = await planned(grammars, toolbox, target, grammar)
        prompts = target.prompts.with_options(ask.template_options)
        prompt_ids = await _prompt(prompts, ask, [*history.items, *items], plan)
        reasoning = target.reasoning(prompt_ids)
        work = Work(
            prompts=[prompt_ids],
            sampling=plan.constrain(ask.sampling(target.served), reasoning),
            seed=ask.seed,
            reasoning=reasoning,
            calls=plan,
            reply=_reply(ask),
        )
        job = job_of(request, entry, target, work)
    return replace(
        job,
        session=history.session if ask.stored else "",
        ordinal=history.ordinal + 1,
        previous=ask.previous_response_id or (branch_of(request, ask) if ask.stored else ""),
        items=items,
        background=bool(ask.background),
        forget=not ask.stored,
    )


class _Form(Enum):
    """The form in which a response is answered."""

    STREAM = auto()
    """Its events, as they come."""
    PRESENT = auto()
    """Its present state, because it runs in the background."""
    WHOLE = auto()
    """Its end."""


def _form(ask: ResponseRequest) -> _Form:
    if ask.streams:
        return _Form.STREAM
    return _Form.PRESENT if ask.background else _Form.WHOLE


async def _answer(request: Request, entry: Entry, form: _Form) -> Response:
    """Returns the HTTP response for an accepted turn."""
    job, found, wait = entry.job, entry.found, await wait_of(request, entry)
    if form is _Form.STREAM:
        return _stream(request, StreamStart(job=job, after=-1, found=found, started=job.created, wait=wait))
    if form is _Form.PRESENT:
        return await _object(request, found or opened(job), wait)
    chunks = await answered(request, job, found=found)
    if error := failure(chunks[-1], job.reply):
        raise error
    return await _object(request, ended(opened(job), tuple(chunks), at=gateway_of(request).clock.now()), wait)


async def _prompt(prompts: Prompts, ask: ResponseRequest, items: Sequence[Item], plan: CallPlan) -> list[int]:
    """Returns the token ids of the prompt, truncated if the request asks for it; raises if it is too long."""
    if ask.truncation != "auto":
        messages = messages_of(ask.instructions, items)
        return await prompts.chat(messages, tools=plan.tools, dialect=plan.dialect)
    return await _fitted(prompts, ask, items, plan, max_tokens=ask.max_output_tokens)


async def _fitted(
    prompts: Prompts, ask: Context, items: Sequence[Item], plan: CallPlan, *, max_tokens: int | None = None
) -> list[int]:
    """Returns the token ids of the prompt without as many of the oldest items as it takes to fit the context window."""
    return await fitted(
        prompts,
        lambda cut: messages_of(ask.instructions, cut.of(items)),
        cuts=cuts(items),
        max_tokens=max_tokens,
        plan=plan,
    )


def _reply(ask: ResponseRequest) -> ResponseReply:
    """Returns the request's fields that the response object repeats."""
    return ResponseReply(
        model=ask.model,
        instructions=ask.instructions,
        max_output_tokens=ask.max_output_tokens,
        truncation=ask.truncation,
        user=ask.user,
        safety_identifier=ask.safety_identifier,
        prompt_cache_key=ask.prompt_cache_key,
        metadata=ask.metadata or {},
        tools=tools_text(ask.tools),
        tool_choice=choice_text(ask.tool_choice),
        serial_calls=ask.parallel_tool_calls is False,
        text=json.dumps(_repeated(ask.text)) if ask.text else "",
        reasoning=_repeated(ask.reasoning),
    )


def _repeated(part: Wire | None) -> dict[str, Any]:
    """Returns an object of the request as the client wrote it."""
    return part.model_dump(by_alias=True, exclude_none=True) if part else {}


async def _object(request: Request, turn: Turn, wait: Wait | None = None) -> Response:
    """Returns the response as one JSON object; its status is ``queued`` until a worker has claimed the job.

    ``wait`` says how the turn waited when it was accepted, which the headers tell.
    """
    gateway = gateway_of(request)
    begun = turn.state.terminal or await gateway.sessions.lookup.is_claimed(turn.id)
    body = response_body(turn, status=None if begun else "queued", with_ledger=wants_ledger(request))
    if not begun and (now := gateway.offers.wait_of(turn.job)):
        body["axon"]["queue"] = wait_body(now)
    headers = {STREAM_HEADER: turn.id, **wait_headers(wait)}
    return Response(msgspec.json.encode(body), media_type="application/json", headers=headers)


def _stream(request: Request, start: StreamStart) -> Response:
    """Streams the events past a number. All tokens are read from the first on, as they number the events."""
    writer = events.Writer(start.job, after=start.after, with_ledger=wants_ledger(request), wait=start.wait)
    return stream(request, start, writer)
