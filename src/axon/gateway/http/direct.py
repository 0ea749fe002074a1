"""Direct dispatch of the routes that are asked most, past the framework's matching and dependencies. Knows no route.

The framework costs as much as all that such a route does itself. The routes stay in the application too, which makes
the OpenAPI document of them and answers other methods on their paths.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from axon.errors import AxonError
from axon.gateway.http.scopes import check_scope

OnError = Callable[[Request, Exception], Awaitable[Response]]


class Direct:
    """Wraps the application. A direct route has a fixed path and takes the request alone."""

    def __init__(
        self, app: ASGIApp, routes: Iterable[Route], on_error: OnError, *, sockets: Mapping[str, ASGIApp] | None = None
    ) -> None:
        """``sockets`` are the applications of WebSockets by their paths."""
        self._app, self._on_error, self._sockets = app, on_error, sockets or {}
        self._routes = {(method, route.path): route for route in routes for method in route.methods or ()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            scope["app"] = self._app
            await self._sockets[scope["path"]](scope, receive, send)
            return
        route = self._routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["app"], scope["route"] = self._app, route
        request = Request(scope, receive, send)
        try:
            await check_scope(request)
            response: Response = await route.endpoint(request)
        except AxonError as error:
            response = await self._on_error(request, error)
        await response(scope, receive, send)
