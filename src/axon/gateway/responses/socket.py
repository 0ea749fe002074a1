"""Serves /v1/responses over a WebSocket: events in, the events of responses out. Knows no queue and no engine.

    accept ─► read events ─► one task for each lane ─► admit, accept, follow, send ─► close

A response goes the same way as by POST, and its events come from the same writer. Lanes run beside each other; in one
lane a response waits for the end of the one before.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from websockets.frames import CloseCode

from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.errors import AxonError, Draining, LimitReached, Unauthenticated
from axon.gateway.directives import SOCKET
from axon.gateway.http.connection.socket_protocol import ARRIVING, LEAVING
from axon.gateway.http.scopes import NEEDED, require_scope
from axon.gateway.offers.wait import Wait
from axon.gateway.responses import events
from axon.gateway.responses.envelope import SocketMessages
from axon.gateway.responses.finding import find, resumed
from axon.gateway.responses.requests import SocketRequest
from axon.gateway.responses.routes import accepted
from axon.gateway.responses.socket_events import CANCEL, CREATE, RETRIEVE, STEER, ClientEvent, event_of, steer_refusal
from axon.gateway.responses.socket_request import SocketCall
from axon.gateway.turn.cancel import stopped
from axon.gateway.turn.context import gateway_of, reader_of
from axon.gateway.turn.counting import count_request
from axon.gateway.turn.headers import wants_ledger
from axon.gateway.turn.latency import Latency
from axon.gateway.turn.sse import frames_of, leave
from axon.gateway.turn.waiting import wait_of
from axon.runtime.tasks import end, race

_MAX_PENDING = 64
"""Events of one WebSocket that may run or wait in their lanes at once."""
_RECHECK_S = 30.0
"""How often the key of an idle WebSocket is looked up again; with every event it is looked up as well."""
_READS = NEEDED["GET /v1/responses/{response_id}"]


@dataclass(frozen=True, slots=True)
class _Close:
    """How the server ends a WebSocket."""

    code: CloseCode
    reason: str = ""


async def serve_responses(scope: Scope, receive: Receive, send: Send) -> None:
    """Serves one WebSocket whose handshake was authenticated; raises ``Forbidden`` before it is accepted."""
    scope["route"] = _ROUTE
    require_scope(_READS, scope["axon.identity"].scopes)
    await _ResponsesSocket(scope, receive, send).run()


@dataclass(frozen=True, slots=True)
class _Route:
    """The route label of the metrics and the log line."""

    path: str


_ROUTE = _Route("/v1/responses")


class _Writer(events.Writer):
    """The events of a response, which remembers why they broke off."""

    problem: AxonError | None = None

    def error(self, error: AxonError) -> bytes:
        self.problem = error
        return super().error(error)


class _ResponsesSocket:
    """One WebSocket, from its acceptance to its close."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._raw_send = scope, receive, send
        self._gateway = gateway_of(Request({**scope, "type": "http"}))
        self._leaving: asyncio.Event = scope[LEAVING]
        scope[ARRIVING].held = self._gateway.bodies.arriving(scope["axon.identity"].tenant)
        self._lanes: dict[str | None, deque[SocketCall]] = {}
        """The events of each lane that wait; a lane that has nothing to do is not in here."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._revoked = asyncio.Event()
        self._num_pending = 0
        self._was_cut = False
        """Whether a stream broke off because the server shuts down."""
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Serves the WebSocket until either side closes it."""
        await self._receive()  # websocket.connect
        with suppress(OSError):  # the client has left
            await self._raw_send({"type": "websocket.accept"})
            if close := await self._until_closed():
                await self._raw_send({"type": "websocket.close", "code": close.code, "reason": close.reason})

    async def _until_closed(self) -> _Close | None:
        """Handles events until the client has left (None) or the server has a reason to close the WebSocket."""
        ends = [asyncio.create_task(each) for each in (self._read(), self._left(), self._expired(), self._refused())]
        try:
            first, *_ = await race(*ends)
            return first.result()
        finally:
            await end(*self._tasks)

    async def _read(self) -> _Close | None:
        """Takes the client's messages until it leaves."""
        if call := self._resumption():
            await self._begin(call)
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return None
            if message.get("text") is None:
                return _Close(CloseCode.UNSUPPORTED_DATA, "messages are text")
            await self._take(message["text"])

    async def _left(self) -> _Close:
        """Returns when the server shuts down and every response here has ended."""
        await self._leaving.wait()
        await self._idle.wait()
        return _Close(CloseCode.GOING_AWAY if self._was_cut else CloseCode.SERVICE_RESTART, "the server shuts down")

    async def _expired(self) -> _Close:
        """Returns when the WebSocket has lived long enough; looks its key up meanwhile."""
        clock = self._gateway.clock
        end = clock.monotonic() + self._gateway.config.socket_lifetime_s
        while (left_s := end - clock.monotonic()) > 0:
            await asyncio.sleep(min(_RECHECK_S, left_s))
            await self._recheck()
        code = "websocket_connection_limit_reached"
        message = "This WebSocket has reached its time limit; open another, and resume your streams there."
        await self._send(SocketMessages().error(LimitReached(message, code=code)))
        return _Close(CloseCode.GOING_AWAY, code)

    async def _refused(self) -> _Close:
        """Returns when the key was revoked."""
        await self._revoked.wait()
        return _Close(CloseCode.POLICY_VIOLATION, "the API key is not valid any more")

    async def _recheck(self) -> None:
        """Looks the key up again; if the store does not answer, the next time."""
        try:
            await SocketCall(self._scope, ClientEvent(type=RETRIEVE)).admit()
        except Unauthenticated:
            self._revoked.set()
        except AxonError:
            pass

    def _resumption(self) -> SocketCall | None:
        """Returns the stream that the handshake's query asks to continue; None if it names none."""
        query = parse_qs(self._scope["query_string"].decode("latin-1"))
        found = {name: values[-1] for name, values in query.items()}
        if "response_id" not in found:
            return None
        event = ClientEvent(
            type=RETRIEVE,
            response_id=found["response_id"],
            starting_after=found.get("starting_after", ""),
            stream_id=found.get("stream_id"),
        )
        return SocketCall(self._scope, event)

    async def _take(self, text: str) -> None:
        """Begins what a message asks for, or answers it with an error event."""
        call = SocketCall(self._scope, ClientEvent(type="", body=text.encode()))
        try:
            self._gateway.bodies.hold(call.request.scope, len(call.event.body))
            call.event = event_of(text)
        except AxonError as error:
            await self._refuse(call, error)
            return
        await self._begin(call)

    async def _begin(self, call: SocketCall) -> None:
        """Starts a call in its lane, or puts it behind those that the lane has."""
        event = call.event
        if self._leaving.is_set():
            await self._refuse(call, Draining(retry_after_s=1.0))
            return
        if self._num_pending >= _MAX_PENDING:
            message = f"A WebSocket may have {_MAX_PENDING} events that run or wait; wait for the end of some."
            await self._refuse(call, LimitReached(message, code="too_many_pending_events", retry_after_s=1.0))
            return
        self._num_pending += 1
        self._idle.clear()
        if event.type in (CANCEL, STEER):
            self._start(self._answer(call))  # at once, whatever its lane does: both are about the response that it runs
        elif event.stream_id in self._lanes:
            self._lanes[event.stream_id].append(call)
        else:
            self._lanes[event.stream_id] = deque()
            self._start(self._run_lane(event.stream_id, call))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs work beside the reading of events; it is cancelled with the WebSocket."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_lane(self, lane: str | None, call: SocketCall | None) -> None:
        """Answers the calls of a lane, one after another."""
        waiting = self._lanes[lane]
        try:
            while call is not None:
                await self._answer(call)
                call = waiting.popleft() if waiting else None
        finally:
            for each in self._lanes.pop(lane):
                each.release()

    async def _answer(self, call: SocketCall) -> None:
        """Answers one call: with its stream, or with an error event."""
        try:
            await call.admit()
            if call.event.type == CREATE:
                await self._create(call)
            elif call.event.type == RETRIEVE:
                await self._retrieve(call)
            elif call.event.type == STEER:
                await self._refuse_to_steer(call)
            else:
                await stopped(self._gateway, await find(call.request, call.event.response_id, unstored=True))
            call.count(200)
        except AxonError as error:
            await self._refuse(call, error)
        except OSError:
            call.count(499)  # the client has left
        except asyncio.CancelledError:
            call.count(499)
            raise
        except Exception:
            await self._refuse(call, call.failed())
        finally:
            call.release()
            self._num_pending -= 1
            if not self._num_pending:
                self._idle.set()

    async def _create(self, call: SocketCall) -> None:
        entry, _ = await accepted(call.request, call.take_body(), SocketRequest, SOCKET)
        wait = await wait_of(call.request, entry)
        await self._stream(call, entry.job, after=-1, found=entry.found, started=entry.job.created, wait=wait)

    async def _retrieve(self, call: SocketCall) -> None:
        turn, after = await resumed(call.request, call.event.response_id, call.event.starting_after)
        await self._stream(call, turn.job, after=after, found=turn)

    async def _refuse_to_steer(self, call: SocketCall) -> None:
        """Answers a steer event, which costs its tenant a request as any other event does."""
        await count_request(call.request)
        call.count(400)
        event = call.event
        await self._send(SocketMessages(event.stream_id).event("response.steer.failed", 0, steer_refusal(event)))

    async def _stream(
        self,
        call: SocketCall,
        job: Job,
        *,
        after: int,
        found: Turn | None = None,
        started: float | None = None,
        wait: Wait | None = None,
    ) -> None:
        """Sends the events past number ``after``, as ``sse.stream`` does."""
        gateway, request = self._gateway, call.request
        envelope = SocketMessages(call.event.stream_id)
        writer = _Writer(job, after=after, with_ledger=wants_ledger(request), wait=wait, envelope=envelope)
        reader = reader_of(request, job, found)
        frames = frames_of(gateway, reader, job, writer, 0, Latency(gateway.metrics, job, started), wait)
        try:
            async with aclosing(frames):
                async for frame in frames:
                    await self._send(frame)
        finally:
            await leave(gateway, reader)
        self._note(writer.problem)

    def _note(self, problem: AxonError | None) -> None:
        """Notes what a stream's or a call's error means for the WebSocket."""
        if isinstance(problem, Draining):
            self._was_cut = True
        if isinstance(problem, Unauthenticated):
            self._revoked.set()

    async def _refuse(self, call: SocketCall, error: AxonError) -> None:
        """Answers a call with an error event."""
        error = await call.refused(error)
        call.release()
        with suppress(OSError):  # the client has left
            await self._send(SocketMessages(call.event.stream_id).error(error))
        if isinstance(error, Unauthenticated):
            self._revoked.set()

    async def _send(self, lines: bytes) -> None:
        """Sends one message for each line; waits while the client reads too slowly."""
        for line in lines.splitlines():
            async with self._sending:
                await self._raw_send({"type": "websocket.send", "text": line.decode()})
