"""The gateway's ASGI application: routes, error handlers and the middleware around them. Knows no route's meaning."""

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from axon.errors import AxonError, InvalidInput, NotFound
from axon.gateway import access, health, streams
from axon.gateway.admin import (
    alerts,
    audit,
    changes,
    fleet,
    keys,
    logs,
    overview,
    plans,
    profiles,
    tenants,
    traces,
    usage,
    workers,
)
from axon.gateway.admin import settings as settings_in_effect
from axon.gateway.admin import streams as live_streams
from axon.gateway.admin.bodies import Admin
from axon.gateway.admin.models import adapters, aliases, deployments, prices, rollouts
from axon.gateway.admin.models import models as registered_models
from axon.gateway.anthropic import routes as messages
from axon.gateway.batches import files as uploads
from axon.gateway.batches import routes as batch_routes
from axon.gateway.batches.room import BatchParts
from axon.gateway.http.auth import Authenticator
from axon.gateway.http.cors import origins_of
from axon.gateway.http.direct import Direct
from axon.gateway.http.errors import Internal, MethodNotAllowed
from axon.gateway.http.middleware import ERROR, REQUEST_ID, Middleware
from axon.gateway.http.refusal import refusal_of
from axon.gateway.http.scopes import check_scope
from axon.gateway.http.socket_exchange import Sockets
from axon.gateway.ollama import models as ollama_models
from axon.gateway.ollama import routes as ollama
from axon.gateway.openai import chat, completions, models, stored, tokens
from axon.gateway.openai.encoders import classify, embeddings, scores
from axon.gateway.pages import oidc_routes
from axon.gateway.pages import routes as page_routes
from axon.gateway.pages.parts import Pages, page
from axon.gateway.pages.rendering import routes as rendering
from axon.gateway.responses import conversations
from axon.gateway.responses import routes as responses
from axon.gateway.responses.socket import serve_responses
from axon.gateway.turn.context import Gateway
from axon.gateway.turn.counting import counted_error

_DESCRIPTION = (
    "API of an Axon server, for clients of OpenAI's, Anthropic's and Ollama's APIs. "
    "Every route but the probes and / needs an API key."
)

PARTS = (
    *(responses, conversations, chat, stored, completions, embeddings, scores, classify, messages, models, tokens),
    *(streams, usage),
    *(ollama, ollama_models),
    *(uploads, batch_routes),
    *(tenants, plans, keys),
    *(registered_models, adapters, deployments, rollouts, aliases, prices, changes, audit),
    *(fleet, workers, overview, live_streams, profiles, logs, alerts, traces, settings_in_effect),
    *(access, health, oidc_routes, page_routes, rendering),
)
"""The modules that make up the API; each has a router."""
_DIRECT = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/messages", "/v1/responses"})
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


def build_app(
    gateway: Gateway,
    admin: Admin,
    authenticator: Authenticator,
    *,
    version: str,
    local_key: str | None = None,
    pages: Pages,
    batches: BatchParts | None = None,
) -> Middleware:
    """Returns the application, ready to serve. ``local_key`` is that of Ollama's clients on this machine that have
    none; without it they need one."""
    app = routes(version)
    app.state.gateway, app.state.admin, app.state.batches = gateway, admin, batches
    app.state.pages = pages
    app.add_exception_handler(AxonError, _on_error)
    app.add_exception_handler(Exception, _on_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    posts = [route for route in _routes() if route.methods == {"POST"} and route.path in _DIRECT]
    return Middleware(
        Direct(app, posts, _on_error, sockets={"/v1/responses": serve_responses}),
        authenticator=authenticator,
        lifecycle=gateway.lifecycle,
        metrics=gateway.metrics,
        max_connections=gateway.config.max_connections,
        num_proxies=gateway.config.proxies,
        cors_origins=origins_of(gateway.config.cors_origins),
        local_key=local_key,
        traces=gateway.traces,
        web_sessions=pages.sessions,
        path_prefix=gateway.config.path_prefix,
        paths=[route.path for route in _routes() if "{" not in route.path],
        serve_socket=Sockets(max_of_tenant=gateway.config.max_tenant_sockets).serve,
    )


async def _docs(request: Request) -> Response:
    """Returns the OpenAPI document as an HTML page that loads nothing from other hosts."""
    return page(request, "common", "docs.html")


async def _openapi(request: Request) -> Response:
    """Returns the OpenAPI document as JSON."""
    return JSONResponse(request.app.openapi())


async def _on_error(request: Request, error: Exception) -> Response:
    problem = await counted_error(request, error if isinstance(error, AxonError) else Internal())
    request.scope[ERROR] = problem
    return _response(request, problem)


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Answers errors of Starlette's routing (404, 405) in the path's own shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        problem: AxonError = NotFound(f"Unknown request URL: {request.method} {request.url.path}.", code="unknown_url")
    elif status == 405:
        problem = MethodNotAllowed(f"{request.url.path} does not take {request.method}.")
    else:
        problem = InvalidInput(str(getattr(error, "detail", "")) or None)
    request.scope[ERROR] = problem
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
