"""Routes of signing in by OpenID Connect: to the issuer's page and back. A person sees them: errors lead to a page."""

from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from axon.errors import AxonError, Forbidden, NotFound, Unauthenticated
from axon.gateway.pages.cookie import NOT_KEPT, address_of, attempt_cookie, attempt_of, signed_in
from axon.gateway.pages.oidc import ATTEMPT_S, OidcSignIn
from axon.gateway.pages.parts import pages_of

router = APIRouter(include_in_schema=False)

_UP = "../../"
"""From these routes to the server's root, whatever path a proxy shows it under."""


@router.get("/ui/sign-in")
async def ways(request: Request) -> Response:
    """Says how one can sign in beside a key: the name of the issuer of OpenID Connect, empty where there is none."""
    issuer = pages_of(request).config.oidc_issuer
    return JSONResponse({"issuer": urlsplit(issuer).hostname or ""}, headers=NOT_KEPT)


@router.get("/ui/oidc/start")
async def start(request: Request, to: str = "") -> Response:
    """Sends the browser to the issuer's page."""
    oidc, pages = _oidc(request), pages_of(request)
    pages.sign_in.check(address_of(request))
    try:
        cookie, address = await oidc.begin(to)
    except AxonError as error:
        return _refused(request, error)
    headers = {**NOT_KEPT, "set-cookie": attempt_cookie(request, cookie, ATTEMPT_S)}
    return RedirectResponse(address, 303, headers=headers)


@router.get("/ui/oidc/callback")
async def callback(request: Request, state: str = "", code: str = "", error: str = "") -> Response:
    """Takes what the browser comes back with, and signs it in. The page that it goes on to asks for the session."""
    pages, oidc = pages_of(request), _oidc(request)
    pages.sign_in.check(address_of(request))
    try:
        person = await oidc.end(attempt_of(request), state=state, code="" if error else code)
        signed = await pages.sign_in.with_person(person.key_id, person.user, address=address_of(request))
    except AxonError as problem:
        if isinstance(problem, Unauthenticated | Forbidden):
            pages.sign_in.guessed(address_of(request))
        return _refused(request, problem)
    response = RedirectResponse(_UP + person.page, 303, headers=NOT_KEPT)
    response.headers.append("set-cookie", attempt_cookie(request, "", 0))
    return await signed_in(request, response, signed[1])


def _oidc(request: Request) -> OidcSignIn:
    oidc = pages_of(request).oidc
    if oidc is None:
        raise NotFound("This server has no issuer of OpenID Connect: gateway.oidc_issuer is not set.", code="no_issuer")
    return oidc


def _refused(request: Request, error: AxonError) -> Response:
    """Sends whoever could not sign in to the form, which says why in words of its own."""
    pages_of(request).sign_in.refused(error, "oidc")
    why = "oidc" if error.code == "oidc_not_granted" else "issuer"
    headers = {**NOT_KEPT, "set-cookie": attempt_cookie(request, "", 0)}
    return RedirectResponse(f"{_UP}sign-in?why={why}", 303, headers=headers)
