"""Sends a line of a batch to this gateway's own application, as a client would: the same routes, limits and queue.

The idempotency key is derived from the batch, the line and the attempt. So a line that another gateway sent before it
died finds its turn, and is not answered twice. Knows no store of batches.
"""

import asyncio
import contextlib
from dataclasses import replace

import msgspec
from starlette.types import ASGIApp, Message, Scope

from axon.domain.batch import Batch
from axon.domain.tenants.key import HOLDER
from axon.domain.tenants.key import Scope as KeyScope
from axon.domain.tenants.tenant import Terms, Tier
from axon.errors import AxonError
from axon.gateway.batches.lines import Line
from axon.gateway.batches.verdict import Answer, retry_after_s
from axon.gateway.http.auth import Identity
from axon.gateway.http.errors import Internal, encoded, status_of
from axon.gateway.http.held_bodies import release_body
from axon.gateway.http.middleware import REQUEST_ID
from axon.gateway.turn.asking import TURN_ID
from axon.sessions.lookup import Lookup

_STOP_S = 5.0


def line_terms(terms: Terms) -> Terms:
    """A tenant's terms for the lines of its batches: at the flex tier, and without the limits that keep an interactive
    client's rate. A batch is one request; its tokens and its concurrent turns count as all others."""
    return replace(terms, requests_per_minute=0.0, queued=0, highest_tier=Tier.FLEX)


def line_scopes(batch: Batch) -> frozenset[KeyScope]:
    """The scopes with which a batch's lines are asked: they may name versions if the batch's own key may."""
    return HOLDER | {KeyScope.VERSIONS} if batch.names_versions else HOLDER


def in_flight(config_limit: int, terms: Terms) -> int:
    """Number of lines that are asked at once: at most half of the tenant's concurrent turns."""
    return max(1, min(config_limit, terms.concurrent // 2) if terms.concurrent else config_limit)


class Calls:
    """Sends lines, and stops those that are under way."""

    def __init__(self, app: ASGIApp, lookup: Lookup) -> None:
        self._app, self._lookup = app, lookup

    def call(self, batch: Batch, line: Line, terms: Terms, attempt: int) -> "Call":
        """A call that is not sent yet."""
        key = f"{batch.id}/{line.number}/{attempt}"
        who = Identity("", batch.tenant, line_scopes(batch), line_terms(terms))
        request_id = f"req_{batch.id.partition('_')[2]}_{line.number}"
        return Call(self._app, self._lookup, batch.endpoint, line.body, who, key, request_id)


class Call:
    """One request to the application."""

    def __init__(
        self, app: ASGIApp, lookup: Lookup, path: str, body: bytes, who: Identity, key: str, request_id: str
    ) -> None:
        self._app, self._lookup, self._body = app, lookup, body
        self._scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"idempotency-key", key.encode()),
            ],
            "client": None,
            "server": None,
            "axon.identity": who,
            REQUEST_ID: request_id,
        }
        self.request_id = request_id
        self._left = asyncio.Event()
        self._is_read = False
        self._status, self._headers = 0, dict[bytes, bytes]()
        self._answered: list[bytes] = []

    async def send(self) -> Answer:
        """Sends the request and returns its whole answer; never raises an error of the application."""
        try:
            await self._app(self._scope, self._receive, self._send)
        except AxonError as error:
            return Answer(status=status_of(error), body=encoded(error), code=error.code)
        except Exception:
            return Answer(status=500, body=encoded(Internal()), code=Internal.code)
        finally:
            release_body(self._scope)
        body = b"".join(self._answered)
        if self._status < 300:
            return Answer(status=self._status, body=body)
        return Answer(status=self._status, body=body, code=_code(body), retry_after_s=retry_after_s(self._headers))

    async def stop(self) -> None:
        """Cancels the request's turn, if it has one, and leaves."""
        if turn_id := self._scope.get(TURN_ID):
            with contextlib.suppress(AxonError):
                await self._lookup.stopped(turn_id, wait_s=_STOP_S, asked=True)
        self._left.set()

    async def _receive(self) -> Message:
        if not self._is_read:
            self._is_read = True
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], dict(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._answered.append(message.get("body", b""))


class _Error(msgspec.Struct):
    code: str | None = None


class _Errors(msgspec.Struct):
    error: _Error


def _code(body: bytes) -> str:
    """The code in an error's body."""
    try:
        return msgspec.json.decode(body, type=_Errors).error.code or ""
    except msgspec.DecodeError:
        return ""
