"""Cross-origin requests (CORS): which web pages may call the API from a browser. Knows no route and no key."""

from collections.abc import Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_EVERY = "*"
_METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE")
_EXPOSED = (
    *("x-request-id", "openai-processing-ms", "openai-version", "x-axon-stream"),
    *("retry-after", "retry-after-ms", "x-should-retry"),
    *(f"x-ratelimit-{what}-{of}" for of in ("requests", "tokens") for what in ("limit", "remaining", "reset")),
)
"""What a page's program may read of an answer's headers."""


def origins_of(text: str) -> tuple[str, ...]:
    """The origins of the setting ``gateway.cors_origins``."""
    return tuple(origin.strip() for origin in text.split(",") if origin.strip())


def with_cors(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """The application, which browsers let pages of these origins call.

    A preflight of such a page is answered without a key, for a browser sends none with it; any other page's is a
    request like all. Keys come in headers, never in cookies: credentials in the sense of CORS are not allowed.
    """
    if not origins:
        return app
    answering = CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=_METHODS,
        allow_headers=[_EVERY],
        expose_headers=_EXPOSED,
        allow_private_network=True,  # else no public page could call a server on the reader's own network
    )

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), "")
        is_allowed = bool(origin) and (origin in origins or _EVERY in origins)
        await (answering if is_allowed else app)(scope, receive, send)

    return answer
