"""Routes of the pages: HTML, the files it loads, signing in and out. Knows no chat and no console."""

import asyncio
from dataclasses import asdict
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from axon.domain.tenants.key import Scope
from axon.domain.tenants.web_session import csrf_token
from axon.errors import AxonError, InvalidInput, TooLarge
from axon.gateway.http.auth import Identity
from axon.gateway.http.cookies import WEB_SESSION, check_csrf, check_own_page, cookie_values, only_value
from axon.gateway.http.errors import ClientLeft, Timeout
from axon.gateway.pages.assets import answer
from axon.gateway.pages.cookie import NOT_KEPT, address_of, cookie_of, prefix, signed_in
from axon.gateway.pages.parts import page, pages_of
from axon.gateway.pages.policy import asset_headers

router = APIRouter(include_in_schema=False)

_POINTER = {
    "name": "Axon",
    "api": "/v1",
    "docs": "/docs",
    "ready": "/readyz",
    "message": "The API needs a key as the bearer token; /docs takes it as the password of any user name.",
}
_MAX_BYTES = 4096
"""Longest body of a request to sign in."""


class _Ask(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request to sign in: one of the two."""

    key: str = ""
    code: str = ""


_ask = msgspec.json.Decoder(_Ask)


@router.head("/")
@router.get("/")
async def start(request: Request) -> Response:
    """Returns the chat to a browser, and to other clients the paths of the API, its documentation and the probe."""
    if "text/html" in request.headers.get("accept", ""):
        pages_of(request).renderer.warm()  # answers will be rendered soon
        return page(request, "chat", "index.html")
    return JSONResponse(_POINTER, headers={"vary": "accept"})


@router.head("/console")
@router.get("/console")
async def console(request: Request) -> Response:
    """Returns the console, which asks for what it shows by the API."""
    return page(request, "console", "index.html")


@router.head("/sign-in")
@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """Returns the form to sign in."""
    return page(request, "common", "sign-in.html")


@router.get("/ui/session")
async def session(request: Request) -> Response:
    """Says who is signed in, with the token that every request that changes something needs."""
    identity: Identity = request.scope["axon.identity"]
    return JSONResponse(_session_body(request, identity, request.scope.get(WEB_SESSION, "")), headers=NOT_KEPT)


@router.post("/ui/sign-in")
async def sign_in(request: Request) -> Response:
    """Exchanges a key or a one-time code for a cookie. A session that the browser had before is ended."""
    pages, address = pages_of(request), address_of(request)
    check_own_page(request.scope["headers"])
    asked = await _read(request)
    try:
        if asked.code:
            identity, value = await pages.sign_in.with_code(asked.code, request.scope, address=address)
        else:
            identity, value = await pages.sign_in.with_key(asked.key.strip(), address=address)
    except AxonError as error:
        pages.sign_in.refused(error, "code" if asked.code else "key")
        raise
    return await signed_in(request, JSONResponse(_session_body(request, identity, value), headers=NOT_KEPT), value)


@router.post("/ui/sign-out")
async def sign_out(request: Request) -> Response:
    """Ends the session and deletes its cookie, whatever has become of its key."""
    headers = request.scope["headers"]
    check_own_page(headers)
    if values := cookie_values(headers):
        value = only_value(values)
        check_csrf(request.method, headers, csrf_token(value))
        await pages_of(request).sessions.end(value)
    return JSONResponse({"status": "ok"}, headers={**NOT_KEPT, "set-cookie": cookie_of(request, "", 0)})


@router.head("/ui/{room}/{file}")
@router.get("/ui/{room}/{file}")
async def asset(request: Request, room: str, file: str) -> Response:
    """Returns a file of a page."""
    return answer(pages_of(request).assets.file(room, file), request.headers, asset_headers())


def _session_body(request: Request, identity: Identity, value: str) -> dict[str, Any]:
    pages = pages_of(request)
    return {
        "tenant": identity.tenant,
        "key": identity.key_id,
        "scopes": sorted(identity.scopes),
        "csrf": csrf_token(value) if value else "",
        "version": pages.version,
        "prefix": prefix(request),
        **({"cli": asdict(pages.cli)} if Scope.ADMIN in identity.scopes else {}),
    }


async def _read(request: Request) -> _Ask:
    """Returns what a request to sign in asks for.

    Only JSON is read: a form of another site's page can send text, and no JSON without asking first (CORS).
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InvalidInput("Send the key as JSON, with the content type application/json.", code="invalid_json")
    body = b""
    try:
        async with asyncio.timeout(pages_of(request).config.body_timeout_s):
            async for part in request.stream():
                body += part
                if len(body) > _MAX_BYTES:
                    raise TooLarge(f"The body is larger than {_MAX_BYTES} bytes.")
    except TimeoutError:
        raise Timeout() from None
    except ClientDisconnect:
        raise ClientLeft() from None
    try:
        asked = _ask.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidInput('The body must be {"key": "…"} or {"code": "…"}.', code="invalid_json") from None
    if bool(asked.key) == bool(asked.code):
        raise InvalidInput('The body must be {"key": "…"} or {"code": "…"}.', param="key")
    return asked
