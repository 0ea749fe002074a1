"""Routes of /v1/messages: create a message, and count its input tokens. Knows no queue and no engine."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.dispatch.affinity import chat_affinity
from axon.domain.reply import MessagesReply
from axon.gateway.anthropic.answer import answer
from axon.gateway.anthropic.content import messages_of
from axon.gateway.anthropic.requests import CountRequest, MessagesRequest
from axon.gateway.anthropic.sentences import blaming
from axon.gateway.directives import MESSAGES
from axon.gateway.http.schema import body_of_kind
from axon.gateway.openai.formats import grammar_of
from axon.gateway.turn.asking import Api, admitted
from axon.gateway.turn.body import read_body
from axon.gateway.turn.calling import planned
from axon.gateway.turn.context import find_model, gateway_of, identity_of
from axon.gateway.turn.counting import count_request
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.job import job_of
from axon.gateway.turn.target import target_of
from axon.sessions.new_job import Work
from axon.text.tools.plan import plan_of

router = APIRouter(tags=["messages"])
_MESSAGES = Api("messages", "msg_")
_MAX_WINDOWS = 8
"""Input tokens are counted up to this many times the model's context window."""


@router.post("/v1/messages", openapi_extra=body_of_kind(MessagesRequest), summary="Create a message")
async def create(request: Request) -> Response:
    """Returns the model's next message in a conversation as Anthropic's API does, whole or streamed token by token.

    The key may come in an `x-api-key` header too. Errors have Anthropic's shape.
    """
    entry, streams = await _accepted(request)
    return await answer(request, entry, streams=streams)


async def _accepted(request: Request) -> tuple[Entry, bool]:
    """Returns the entry of the accepted turn, and whether its answer is streamed. The body is not held any longer."""
    gateway, tenant = gateway_of(request), identity_of(request).tenant
    body, ask = await read_body(request, MessagesRequest, MESSAGES)
    ask.check()
    messages, toolbox = messages_of(ask.system, ask.messages), ask.toolbox
    wanted, streams = find_model(request, ask.model, with_fallbacks=True), bool(ask.stream)
    async with admitted(request, body, _MESSAGES, wanted, tier=ask.tier, keeps=False, streams=streams) as entry:
        if entry.is_new:
            form = await grammar_of(gateway.grammars.of(tenant), ask.form)
            with blaming():
                target = await target_of(request, entry, wanted)
                plan = await planned(gateway.grammars.of(tenant), toolbox, target, form)
                prompts = target.prompts.with_options(ask.template_options)
                prompt_ids = await prompts.chat(messages, tools=plan.tools, dialect=plan.dialect)
                reasoning = target.reasoning(prompt_ids)
                work = Work(
                    prompts=[prompt_ids],
                    sampling=plan.constrain(ask.sampling(target.served), reasoning),
                    seed=ask.seed,
                    reasoning=reasoning,
                    calls=plan,
                    affinity=chat_affinity(tenant, messages),
                    reply=MessagesReply(model=ask.model, hides_thinking=ask.hides_thinking),
                )
                job = job_of(request, entry, target, work)
            await entry.accept(job)
    return entry, streams


@router.post(
    "/v1/messages/count_tokens", openapi_extra=body_of_kind(CountRequest), summary="Count the tokens of a message"
)
async def count(request: Request) -> dict[str, int]:
    """Counts the tokens of the prompt that a message of this conversation would have: those that are billed as input.

    It counts everything, even if that does not fit into the model's context.
    """
    _, ask = await read_body(request, CountRequest, MESSAGES)
    ask.check()
    messages, toolbox = messages_of(ask.system, ask.messages), ask.toolbox
    offer = find_model(request, ask.model).offer
    version = offer.deployment.stable
    prompts = (await offer.prompts(version)).with_options(ask.template_options)
    await count_request(request)
    with blaming():
        plan = plan_of(toolbox, prompts.dialect(offer.served(version).call_format))
        ids = await prompts.unchecked(messages, tools=plan.tools, dialect=plan.dialect, max_windows=_MAX_WINDOWS)
    return {"input_tokens": len(ids)}
