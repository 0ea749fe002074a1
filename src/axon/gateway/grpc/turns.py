"""Generate and Cancel of ``axon.v1.Axon``: begin a turn, go on with one, stop one. Knows no queue and no engine."""

from functools import partial

from axon.domain.tenants.key import Scope
from axon.domain.turn import Turn
from axon.errors import InvalidInput
from axon.gateway.directives import CHAT, COMPLETIONS
from axon.gateway.grpc.asks import in_our_words, turn_body
from axon.gateway.grpc.call import GrpcCall
from axon.gateway.grpc.writer import Writer, usage_of
from axon.gateway.openai import chat as chats
from axon.gateway.openai import completions
from axon.gateway.openai.finding import find_any, find_stream
from axon.gateway.openai.requests import ChatRequest, CompletionRequest
from axon.gateway.turn.asking import Api
from axon.gateway.turn.cancel import stopped
from axon.gateway.turn.context import reader_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.latency import Latency
from axon.gateway.turn.position import check_position
from axon.gateway.turn.sse import StreamStart, frames_of, leave
from axon.gateway.turn.waiting import wait_of
from axon.v1 import axon_pb2 as pb

ASKS = frozenset({Scope.INFERENCE})
"""Scopes that begin a turn; going on with one needs less."""
_CHAT, _PROMPT = Api("grpc-chat", chats.PREFIX), Api("grpc-prompt", "cmpl-")
_MAX_SEQ = 10**15
_AFTER = "resume.after"


async def generate(call: GrpcCall) -> None:
    """Streams an answer: of a new turn, or the rest of one that was begun before."""
    await _stream(call, await _start(call))


async def _start(call: GrpcCall) -> StreamStart:
    """Reads the call's message, which is not held any longer than this, and returns where its stream begins."""
    asked = await call.read(pb.GenerateRequest)
    what = asked.WhichOneof("what")
    if what == "turn":
        entry = await _accepted(call, asked.turn)
        job, wait = entry.job, await wait_of(call.request, entry)
        return StreamStart(job=job, after=0, found=entry.found, started=job.created, wait=wait)
    if what == "resume":
        turn = await _resumed(call, asked.resume)
        return StreamStart(job=turn.job, after=asked.resume.after, found=turn)
    raise InvalidInput("The message needs 'turn' or 'resume'.", param="turn", code="missing_required_parameter")


async def cancel(call: GrpcCall) -> None:
    """Stops a turn, and says how it ended."""
    asked = await call.read(pb.CancelRequest)
    turn = await stopped(call.gateway, await find_any(call.request, asked.id, "id"))
    has_ended = turn.state.terminal
    status = turn.state.value if has_ended else "in_progress"
    usage = usage_of(turn.usage) if has_ended else None
    await call.respond(pb.CancelResponse(id=turn.id, status=status, usage=usage))


async def _accepted(call: GrpcCall, turn: pb.Turn) -> Entry:
    """Returns the entry of the accepted turn, as chats and completions over HTTP have it."""
    call.check_scope(ASKS)
    call.check_takes()
    body, bodies = await call.in_turn(partial(turn_body, turn)), call.gateway.bodies
    is_chat = turn.WhichOneof("input") == "chat"
    try:
        if is_chat:
            chat = await bodies.parse(ChatRequest, body, CHAT.refused, CHAT.notes)
            return await chats.accepted(call.request, body, chat, _CHAT)
        prompt = await bodies.parse(CompletionRequest, body, COMPLETIONS.refused, COMPLETIONS.notes)
        return await completions.accepted(call.request, body, prompt, _PROMPT)
    except InvalidInput as error:
        raise in_our_words(error) from None


async def _resumed(call: GrpcCall, asked: pb.Resume) -> Turn:
    """Returns the turn to go on with; its client is a reader that came back."""
    gateway = call.gateway
    if not 0 <= asked.after < _MAX_SEQ:
        raise InvalidInput(f"'{_AFTER}' must be a token's seq: a whole number, 0 or more.", param=_AFTER)
    turn = await find_stream(call.request, asked.id, "resume.id")
    await check_position(gateway.sessions.lookup, turn, asked.after, _AFTER)
    await gateway.follower.arrive(turn.id, reader_of(call.request, turn.job))
    gateway.metrics.streams.resumes.labels(result="ok").inc()
    return turn


async def _stream(call: GrpcCall, start: StreamStart) -> None:
    """Sends the messages from there on, as ``sse.stream`` does; raises the error that ends them."""
    gateway, job, after = call.gateway, start.job, start.after
    reader = reader_of(call.request, job, start.found)
    writer = Writer(job, after=after, wait=start.wait)
    messages = frames_of(gateway, reader, job, writer, after, Latency(gateway.metrics, job, start.started), start.wait)
    try:
        await call.begin(job.id)
        await call.stream(messages)
    finally:
        await messages.aclose()
        await leave(gateway, reader)
    if writer.problem is not None:
        raise writer.problem
