"""Cross-origin requests (CORS): which web pages may call the API from a browser. Knows no route and no key."""

from collections.abc import Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_ANY_ORIGIN = "*"
_METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE")
_EXPOSED = (
    *("x-request-id", "request-id", "openai-processing-ms", "openai-version", "x-axon-stream"),
    *("retry-after", "retry-after-ms", "x-should-retry"),
    *("x-axon-state", "x-axon-queue-position", "x-axon-expected-wait-s"),
    *(f"x-ratelimit-{what}-{of}" for of in ("requests", "tokens") for what in ("limit", "remaining", "reset")),
)
"""Response headers that a web page's program may read (Access-Control-Expose-Headers)."""


def origins_of(text: str) -> tuple[str, ...]:
    """Returns the origins in the setting ``gateway.cors_origins``, which are separated by commas."""
    return tuple(origin.strip() for origin in text.split(",") if origin.strip())


def with_cors(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """Wraps the application so that browsers let pages of these origins call it.

    A preflight request from such a page is answered without a key, because browsers send none with it; a preflight from
    any other page needs a key like every request. Keys come in headers, never in cookies, so CORS credentials stay off.
    """
    if not origins:
        return app
    allowing = CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=_METHODS,
        allow_headers=[_ANY_ORIGIN],
        expose_headers=_EXPOSED,
        allow_private_network=True,  # otherwise no public page could call a server on the user's own network
    )

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        origin = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), "")
        is_allowed = bool(origin) and (origin in origins or _ANY_ORIGIN in origins)
        await (allowing if is_allowed else app)(scope, receive, send)

    return choose
