"""The pages' cookies on a request and its response: where they are good, and who the client is. Knows no route."""

from starlette.requests import Request
from starlette.responses import Response

from axon.gateway.http.address import client_address
from axon.gateway.http.cookies import ATTEMPT_COOKIE, attempt_value, cookie_values, session_cookie, set_cookie
from axon.gateway.http.prefix import is_https, prefix_of
from axon.gateway.pages.parts import pages_of

NOT_KEPT = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
"""Headers of an answer that no browser keeps, and whose address it names to nobody."""


async def signed_in(request: Request, response: Response, value: str) -> Response:
    """Puts the cookie of a new session on the response, and ends those that the browser had before."""
    pages = pages_of(request)
    for old in cookie_values(request.scope["headers"])[:2]:
        await pages.sessions.end(old)
    response.headers.append("set-cookie", cookie_of(request, value, pages.config.web_session_s))
    return response


def cookie_of(request: Request, value: str, max_age_s: float) -> str:
    """Returns the Set-Cookie header of the session."""
    path = prefix(request) or "/"
    return session_cookie(value, path=path, is_secure=_is_secure(request), max_age_s=max_age_s)


def attempt_cookie(request: Request, value: str, max_age_s: float) -> str:
    """Returns the Set-Cookie header of an attempt to sign in by OpenID Connect. It is ``Lax``, because the browser
    comes back with it from the issuer's page."""
    path = f"{prefix(request)}/ui/oidc"
    return set_cookie(
        ATTEMPT_COOKIE, value, path=path, is_secure=_is_secure(request), max_age_s=max_age_s, same_site="Lax"
    )


def attempt_of(request: Request) -> str:
    """Returns the value of the attempt's cookie; empty if there is none, or more than one."""
    return attempt_value(request.scope["headers"])


def prefix(request: Request) -> str:
    """Returns the path under which a proxy shows the server; empty where there is none."""
    config = pages_of(request).config
    return prefix_of(request.scope, path_prefix=config.path_prefix, num_proxies=config.proxies)


def address_of(request: Request) -> str:
    """Returns the client's IP address."""
    forwarded = [value for name, value in request.scope["headers"] if name == b"x-forwarded-for"]
    return client_address((request.scope.get("client") or ("",))[0], forwarded, pages_of(request).config.proxies)


def _is_secure(request: Request) -> bool:
    """Whether the browser came by https. To the routes of OpenID Connect it comes by the address that is registered."""
    config = pages_of(request).config
    is_by_issuer = request.url.path.startswith("/ui/oidc/") and config.oidc_redirect_url.startswith("https://")
    return is_by_issuer or is_https(request.scope, num_proxies=config.proxies)
