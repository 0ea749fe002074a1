"""The gateway's ASGI application: routes, error handlers and the middleware around them. Knows no route's meaning."""

from importlib.resources import files

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from axon.errors import AxonError, InvalidInput, LimitReached, NotFound, TooLarge
from axon.gateway import health, streams
from axon.gateway.admin import aliases, changes, deployments, fleet, keys, plans, prices, rollouts, tenants, usage
from axon.gateway.admin import models as registered_models
from axon.gateway.admin.bodies import Admin
from axon.gateway.anthropic import routes as messages
from axon.gateway.http.auth import Authenticator
from axon.gateway.http.cors import origins_of
from axon.gateway.http.direct import Direct
from axon.gateway.http.errors import Internal, MethodNotAllowed
from axon.gateway.http.middleware import ERROR, METERS, REQUEST_ID, Middleware
from axon.gateway.http.refusal import refusal_of
from axon.gateway.http.scopes import check_scope
from axon.gateway.openai import chat, completions, models
from axon.gateway.responses import conversations
from axon.gateway.responses import routes as responses
from axon.gateway.turn.context import Gateway
from axon.gateway.turn.counting import count_request

_DESCRIPTION = (
    "API of an Axon server, for clients of OpenAI's and Anthropic's APIs. "
    "Every route but the probes and / needs an API key."
)

PARTS = (
    *(responses, conversations, chat, completions, messages, models, streams, usage),
    *(tenants, plans, keys),
    *(registered_models, deployments, rollouts, aliases, prices, changes, fleet, health),
)
"""The modules that make up the API; each has a router."""
_DIRECT = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"})
"""Paths whose POST routes go past the framework, because they are asked most."""


def routes(version: str) -> FastAPI:
    """Returns an application with all routes and no parts behind them, enough to make its OpenAPI document."""
    app = FastAPI(
        title="Axon",
        version=version,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # FastAPI's own route for the document would check no scope
        dependencies=[Depends(check_scope)],
        redirect_slashes=False,  # a redirect would repeat the Host header, which the client may forge
    )
    for part in PARTS:
        app.include_router(part.router)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    app.add_api_route("/openapi.json", _openapi, include_in_schema=False)
    return app


def build_app(gateway: Gateway, admin: Admin, authenticator: Authenticator, *, version: str) -> Middleware:
    """Returns the application, ready to serve."""
    app = routes(version)
    app.state.gateway, app.state.admin = gateway, admin
    app.add_exception_handler(AxonError, _on_error)
    app.add_exception_handler(Exception, _on_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    return Middleware(
        Direct(app, [route for route in _routes() if route.methods == {"POST"} and route.path in _DIRECT], _on_error),
        authenticator=authenticator,
        lifecycle=gateway.lifecycle,
        metrics=gateway.metrics,
        max_connections=gateway.config.max_connections,
        num_proxies=gateway.config.proxies,
        cors_origins=origins_of(gateway.config.cors_origins),
    )


async def _docs() -> Response:
    """Returns the OpenAPI document as an HTML page that loads nothing from other hosts."""
    return HTMLResponse(files("axon.gateway").joinpath("ui/docs.html").read_text())


async def _openapi(request: Request) -> Response:
    """Returns the OpenAPI document as JSON."""
    return JSONResponse(request.app.openapi())


async def _on_error(request: Request, error: Exception) -> Response:
    problem = await _counted(request, error if isinstance(error, AxonError) else Internal())
    request.scope[ERROR] = problem
    return _response(request, problem)


async def _counted(request: Request, error: AxonError) -> AxonError:
    """Returns the error to answer with: ``error``, or ``LimitReached`` if the tenant's request bucket is empty.

    A request with an invalid body has cost work to read and parse, so it takes one request from its tenant's bucket,
    unless it has taken one before.
    """
    if not isinstance(error, InvalidInput | TooLarge) or METERS in request.scope:
        return error
    try:
        await count_request(request)
    except LimitReached as limit:
        return limit
    except AxonError:
        pass  # the request cannot be counted now, and is refused nevertheless
    return error


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Answers errors of Starlette's routing (404, 405) in the path's own shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        problem: AxonError = NotFound(f"Unknown request URL: {request.method} {request.url.path}.", code="unknown_url")
    elif status == 405:
        problem = MethodNotAllowed(f"{request.url.path} does not take {request.method}.")
    else:
        problem = InvalidInput(str(getattr(error, "detail", "")) or None)
    answer = _response(request, problem, status)
    if status == 405:
        answer.headers["allow"] = ", ".join(_methods(request.url.path))
    return answer


def _methods(path: str) -> list[str]:
    """Returns the methods that a path takes; a page of the docs takes GET. Starlette names one route's methods only."""
    found = [route for route in _routes() if route.path_regex.match(path)]
    return sorted({method for route in found for method in route.methods or ()}) or ["GET"]


def _routes() -> list[Route]:
    return [route for part in PARTS for route in part.router.routes if isinstance(route, Route)]


async def _on_validation_error(request: Request, error: Exception) -> Response:
    return await _on_error(request, InvalidInput("The request's parameters are not valid."))


def _response(request: Request, error: AxonError, status: int | None = None) -> Response:
    refusal = refusal_of(error, request.scope["path"], request.scope.get(REQUEST_ID, ""), status=status)
    return Response(refusal.body, refusal.status, headers=refusal.headers)
