"""The middleware around every request: request id, authentication, metrics and log line, errors in one shape.

It denies by default: a path that is not listed as public needs a key, and a connection that is neither an HTTP request
nor a WebSocket with a place to go is refused before the application sees it. It knows no route's meaning.
"""

import math
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from axon.admission.meters import Meters
from axon.errors import AxonError, DependencyDown, Draining, Overloaded
from axon.gateway.http import anthropic, ollama
from axon.gateway.http.address import client_address
from axon.gateway.http.auth import Authenticator, Identity
from axon.gateway.http.cookies import WEB_SESSION, cookie_values
from axon.gateway.http.cors import with_cors
from axon.gateway.http.errors import Internal, status_of
from axon.gateway.http.fair_start import FairStart
from axon.gateway.http.held_bodies import release_body
from axon.gateway.http.outages import Outages
from axon.gateway.http.prefix import inside, redirect
from axon.gateway.http.refusal import refusal_of
from axon.gateway.http.tracing import RequestTraces
from axon.runtime.lifecycle import Lifecycle
from axon.telemetry.metrics import Metrics
from axon.telemetry.redact import describe

PUBLIC = frozenset({"/", "/console", "/sign-in", "/livez", "/readyz", "/health"})
"""Paths that need no key."""
ASSETS = ("/ui/common/", "/ui/chat/", "/ui/console/")
"""Folders of the pages' own files, which need no key either."""
_SIGNING_IN = frozenset(
    {
        *(("GET", "/ui/sign-in"), ("POST", "/ui/sign-in"), ("POST", "/ui/sign-out")),
        *(("GET", "/ui/oidc/start"), ("GET", "/ui/oidc/callback")),
    }
)
"""Requests that need no key: they show one or something that stands for it, or ask how to. Whoever's key has ended or
whose tenant is suspended can still sign out."""
_QUIET = PUBLIC | {"/ui/{room}/{file}"}
"""Routes whose requests are not logged."""
OPEN_ROUTES = _QUIET | {path for _, path in _SIGNING_IN}
"""Routes that need no key."""
_BASIC = frozenset({"/docs", "/openapi.json"})
"""Paths that take the key by HTTP Basic too, because a person opens them in a browser."""
ASKED_BY_PROXIES = "/v1/auth"
"""The path that takes a key in any header that some route takes it in."""
_UNMATCHED = "unmatched"
"""The route label of a request that matched no route, or was refused before routing on a path with a parameter."""
_ADMIN = "/v1/admin/"
"""Consoles look here every second: their looks are no news, and would push everything else out of the last lines."""
_MAX_PATH_CHARS = 200
_MAX_ADDRESS_CHARS = 64
_OPENAI_VERSION = b"2020-10-01"
"""The value of the ``openai-version`` header, which OpenAI's clients expect."""
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
"""Turns MIME sniffing off: no browser runs what a tenant uploaded or a model said because it looks like a script."""
_POLICY_VIOLATION = 1008
"""WebSocket close code (RFC 6455) of a connection that the server does not take."""
ERROR = "axon.error"
"""Key of the ASGI scope under which the error that answered the request is kept."""
REQUEST_ID = "axon.request_id"
"""Key of the ASGI scope under which the request's id is kept."""
ARRIVED = "axon.arrived"
"""Key of the ASGI scope under which the arrival of the request is kept, a reading of ``time.perf_counter``."""
METERS = "axon.meters"
"""Key of the ASGI scope under which the tenant's limits, as this request found them, are kept."""

_logger = structlog.get_logger("axon.gateway")


class WebSessionLookup(Protocol):
    """Finds who is signed in with a cookie."""

    async def identify(self, scope: Scope, values: Sequence[str], *, address: str) -> Identity:
        """Returns the caller; raises where the cookie is not good, or the request came from another site's page."""


ServeSocket = Callable[["Middleware", Scope, Receive, Send], Awaitable[None]]
"""Serves one WebSocket; it authenticates it first, by ``Middleware.admit``."""


class Middleware:
    """Wraps an ASGI application: one ``_Exchange`` for each HTTP request.

    Of the other types of ASGI scope only ``lifespan`` passes, which is the server's own and no client's. A WebSocket is
    given to ``serve_socket``; without one it is closed before it is accepted, which its client sees as a 403.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticator,
        lifecycle: Lifecycle,
        metrics: Metrics,
        max_connections: int,
        num_proxies: int = 0,
        cors_origins: Collection[str] = (),
        serve_socket: ServeSocket | None = None,
        local_key: str | None = None,
        traces: RequestTraces | None = None,
        paths: Collection[str] = (),
        web_sessions: WebSessionLookup | None = None,
        path_prefix: str = "",
    ) -> None:
        """``local_key`` is the key of requests to Ollama's routes that come from this machine and show none; without
        it they are refused. ``traces`` is None where nothing is traced. ``paths`` are those of routes that need no
        parameter: a request that is refused before it is routed is counted under one of them. Without
        ``web_sessions`` no cookie is read. ``path_prefix`` is cut off the paths that begin with it."""
        self._entry = with_cors(self._exchange, cors_origins)
        self._app, self._authenticator = app, authenticator
        self._lifecycle, self.metrics = lifecycle, metrics
        self._max_connections, self._num_proxies = max_connections, num_proxies
        self._serve_socket, self._local_key = serve_socket, local_key
        self._outages, self._traces, self._paths = Outages(), traces, frozenset(paths)
        self._web_sessions, self._path_prefix = web_sessions, path_prefix
        self._fair_start = FairStart()
        self.active = 0
        """Number of requests that are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._path_prefix and not inside(scope, self._path_prefix):
            await redirect(self._path_prefix, send)
            return
        match scope["type"]:
            case "http":
                await self._entry(scope, receive, send)
            case "lifespan":
                await self._app(scope, receive, send)
            case "websocket" if self._serve_socket is not None:
                with self.busy():
                    await self._serve_socket(self, scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": "No WebSockets here."})
            case other:
                raise ValueError(f"an ASGI scope of the type {other!r} is not served")

    async def _exchange(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.busy():
            await _Exchange(self, scope, receive, send).run()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Counts one more request for the length of a block."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    @property
    def is_taking(self) -> bool:
        """Whether new requests are taken."""
        return self._lifecycle.taking

    async def admit(self, scope: Scope) -> None:
        """Authenticates the request and stores its identity in the scope; raises if it may not go on."""
        path, headers = scope["path"], scope["headers"]
        if is_public(scope):
            return
        scope[ARRIVED] = time.perf_counter()
        if self._traces is not None and scope["type"] == "http":
            self._traces.begin(scope)
        if self.active > self._max_connections:
            raise Overloaded(retry_after_s=1.0)
        if anthropic.has(path) or path == ASKED_BY_PROXIES:
            credentials = anthropic.credentials_of(headers)
        else:
            credentials = [value for name, value in headers if name == b"authorization"]
        if self._local_key is not None and ollama.has(path) and ollama.is_local(scope):
            credentials = [b"Bearer " + self._local_key.encode()]
        scope["axon.identity"] = await self._identified(scope, credentials)
        await self._fair_start.wait(scope["axon.identity"].tenant)
        if not self._lifecycle.taking and scope["method"] == "POST":
            raise Draining(retry_after_s=5.0)

    async def _identified(self, scope: Scope, credentials: list[bytes]) -> Identity:
        """Returns the caller by the key in a header, or else by the cookie of a web session. A WebSocket takes no
        cookie, because browsers let every site's page open one with it."""
        address = self.address(scope)
        web_sessions = self._web_sessions if scope["type"] == "http" and not credentials else None
        if web_sessions is not None and (values := cookie_values(scope["headers"])):
            return await web_sessions.identify(scope, values, address=address)
        return await self._authenticator.identify(credentials, basic=scope["path"] in _BASIC, address=address)

    def address(self, scope: Scope) -> str:
        """Returns the client's IP address."""
        forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return client_address((scope.get("client") or ("",))[0], forwarded, self._num_proxies)

    async def forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Calls the wrapped application."""
        await self._app(scope, receive, send)

    def count(self, scope: Scope, status: int, started: float | None, *, is_probe: bool = False) -> None:
        """Counts an answered request in the metrics and, unless its path is public, writes its log line.

        ``is_probe`` says that it is public whatever its path. ``started`` is a reading of ``time.perf_counter``; None
        for a WebSocket, whose duration is its client's choice.
        """
        identity = scope.get("axon.identity")
        route = getattr(scope.get("route"), "path", None) or self._named(scope["path"])
        tenant = self.metrics.tenants.label(identity.tenant) if identity else ""
        self.metrics.requests.answered.labels(route, str(status), tenant).inc()
        if started is not None:
            self.metrics.requests.duration.labels(route).observe(time.perf_counter() - started)
        self._log_outage(scope.get(ERROR))
        if is_probe or route in _QUIET:
            return
        if self._traces is not None:
            self._traces.ended(scope, route, status)
        if scope["method"] == "GET" and route.startswith(_ADMIN) and status < 400:
            _logger.debug("request.looked", route=route, status=status, ms=None if started is None else _ms(started))
            return
        _logger.info(
            "request.answered",
            method=scope["method"],
            route=route,
            status=status,
            path=loggable(scope["path"], _MAX_PATH_CHARS) if route == _UNMATCHED else None,
            ms=None if started is None else _ms(started),
            client=loggable(self.address(scope), _MAX_ADDRESS_CHARS) if status >= 400 else None,
        )

    def _named(self, path: str) -> str:
        """The route label of a request that was refused before routing, or that no route takes."""
        return path if path in self._paths else _UNMATCHED

    def _log_outage(self, error: AxonError | None) -> None:
        """Logs which dependency failed and why, which the response does not say; repeated failures share a line."""
        if isinstance(error, DependencyDown) and (num := self._outages.note(error, time.monotonic())):
            cause = describe(error.__cause__) if error.__cause__ is not None else None
            _logger.warning(
                "dependency.unavailable", code=error.code, problem=error.message, cause=cause, num_requests=num
            )


class _Exchange:
    """One request and its response: admits the request, forwards it, and answers it if either raises."""

    def __init__(self, middleware: Middleware, scope: Scope, receive: Receive, send: Send) -> None:
        self._middleware, self._scope, self._receive, self._send = middleware, scope, receive, send
        self._started = time.perf_counter()
        self._status = 0
        self._request_id = scope[REQUEST_ID] = request_id_of(scope)

    async def run(self) -> None:
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=self._request_id)
        try:
            await self._middleware.admit(self._scope)
            if identity := self._scope.get("axon.identity"):
                structlog.contextvars.bind_contextvars(tenant_id=identity.tenant)
            await self._middleware.forward(self._scope, self._receive, self._answer)
        except AxonError as error:
            await self._refuse(error)
        except Exception:
            _logger.exception("request.failed")
            await self._refuse(Internal())
        finally:
            release_body(self._scope)
            self._middleware.count(self._scope, self._status or 499, self._started)

    async def _refuse(self, error: AxonError) -> None:
        self._scope[ERROR] = error
        if self._status:
            return  # the response has begun: its stream ends with an error frame, or the connection breaks off
        refusal = refusal_of(error, self._scope["path"], self._request_id)
        headers = dict(refusal.headers)
        if self._scope["path"] in _BASIC and status_of(error) == 401:
            headers["www-authenticate"] = 'Basic realm="axon: any user, your API key as password"'
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._answer({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await self._answer({"type": "http.response.body", "body": refusal.body})

    async def _answer(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message.get("headers", ()), *self._headers()]
            if not any(name == b"x-content-type-options" for name, _ in headers):
                headers.append(_NO_SNIFFING)
            if WEB_SESSION in self._scope:  # whoever uses the browser next finds nothing of it
                headers = [each for each in headers if each[0] != b"cache-control"] + [(b"cache-control", b"no-store")]
            message["headers"] = headers
        await self._send(message)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        request_id, limits = self._request_id.encode(), limit_headers(self._scope.get(METERS))
        if anthropic.has(self._scope["path"]):
            return [(b"x-request-id", request_id), (b"request-id", request_id), *limits]
        return [
            (b"x-request-id", request_id),
            (b"openai-version", _OPENAI_VERSION),
            (b"openai-processing-ms", str(_ms(self._started)).encode()),
            *limits,
        ]


def is_public(scope: MutableMapping[str, Any]) -> bool:
    """Whether a request needs no key. Other methods on the paths of files need one."""
    path, method = scope["path"], scope.get("method", "GET")
    if path in PUBLIC or (method, path) in _SIGNING_IN:
        return True
    return method in ("GET", "HEAD") and path.startswith(ASSETS)


def since_arrival_s(scope: MutableMapping[str, Any]) -> float:
    """Returns the seconds since the request arrived; 0 for one that did not pass the middleware."""
    arrived: float | None = scope.get(ARRIVED)
    return 0.0 if arrived is None else time.perf_counter() - arrived


def limit_headers(meters: Meters | None) -> list[tuple[bytes, bytes]]:
    """Returns the tenant's limits, and what is left of each, as OpenAI's ``x-ratelimit-*`` headers."""
    found: list[tuple[bytes, bytes]] = []
    for name, meter in (meters.seen if meters else {}).items():
        found += [
            (f"x-ratelimit-limit-{name}".encode(), str(int(meter.limit)).encode()),
            (f"x-ratelimit-remaining-{name}".encode(), str(int(max(0, meter.remaining))).encode()),
            (f"x-ratelimit-reset-{name}".encode(), duration(meter.reset_s).encode()),
        ]
    return found


def duration(seconds: float) -> str:
    """Formats a time as Go's ``time.Duration`` does, and OpenAI's headers with it: ``12ms``, ``1.5s``, ``6m0s``."""
    if seconds < 1:
        return f"{math.ceil(max(0.0, seconds) * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"


def loggable(text: str, max_chars: int) -> str:
    """Returns a client's text for a log line: cut after ``max_chars`` characters, control characters replaced."""
    short = text if len(text) <= max_chars else text[:max_chars] + "…"
    return "".join(each if each.isprintable() else "?" for each in short)


def request_id_of(scope: MutableMapping[str, Any]) -> str:
    """Returns the client's ``x-request-id`` if it is short printable ASCII, otherwise a new id."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text = value.decode("latin-1")
            if 0 < len(text) <= 128 and text.isascii() and text.isprintable():
                return str(text)
    return f"req_{uuid.uuid4().hex}"


def _ms(started: float) -> int:
    """Returns the milliseconds since ``started``, a reading of ``time.perf_counter``."""
    return round((time.perf_counter() - started) * 1000)
