"""Each route asks for a scope: the table has them all, and nothing else."""

from types import SimpleNamespace

import pytest
from fastapi.routing import APIRoute
from starlette.requests import Request

from axon.domain.tenants.key import HOLDER, Scope
from axon.errors import Forbidden
from axon.gateway.app import PARTS
from axon.gateway.http.auth import Identity
from axon.gateway.http.middleware import OPEN_ROUTES, is_public
from axon.gateway.http.scopes import NEEDED, check_scope

PAGES = {"GET /docs", "GET /openapi.json"}
AUTH = {route for route in NEEDED if route.endswith(" /v1/auth")}
"""Changes nothing by any method: proxies ask it by the method of the request that they ask for."""
OWN = {"GET /ui/session", "POST /ui/render"}
"""About the session of whoever asks, or a text that they send and get back as HTML."""


def request(route: str, scopes: frozenset[Scope]) -> Request:
    method, path = route.split(" ")
    who = Identity("k0000001", "acme", scopes)
    return Request({"type": "http", "method": method, "route": SimpleNamespace(path=path), "axon.identity": who})


def allowed(scopes: frozenset[Scope]) -> set[str]:
    return {route for route, needed in NEEDED.items() if needed & scopes}


def test_every_route_has_its_scope_and_every_scope_its_route() -> None:
    own = [route for part in PARTS for route in part.router.routes if isinstance(route, APIRoute)]
    there = {f"{method} {route.path}" for route in own for method in route.methods or ()}
    assert there | PAGES == set(NEEDED)


def test_only_the_probes_and_what_a_page_is_made_of_ask_for_none() -> None:
    assert {route.split(" ")[1] for route, needed in NEEDED.items() if not needed} == OPEN_ROUTES


@pytest.mark.parametrize("route", NEEDED)
def test_the_middleware_lets_those_in_without_a_key_and_no_others(route: str) -> None:
    method, path = route.split(" ")
    filled = path.replace("{room}", "common").replace("{file}", "api.js")
    assert is_public({"method": method, "path": filled}) == (not NEEDED[route])


def test_what_is_under_admin_is_for_admins_and_nothing_else_is() -> None:
    admin = {route for route in NEEDED if "/v1/admin/" in route}
    assert allowed(frozenset({Scope.ADMIN})) == admin | PAGES | AUTH | OWN
    assert not admin & allowed(HOLDER)


def test_a_key_that_may_only_read_changes_nothing() -> None:
    assert {route.split(" ")[0] for route in allowed(frozenset({Scope.READ})) - AUTH - OWN} == {"GET"}


def test_a_key_that_may_only_ask_can_follow_its_answer_but_not_look_around() -> None:
    asks = allowed(frozenset({Scope.INFERENCE}))
    assert {"GET /v1/streams/{stream_id}", "GET /v1/responses/{response_id}", "GET /v1/models"} <= asks
    assert not {route for route in asks if route.startswith("GET /v1/conversations")}


@pytest.mark.parametrize("route", [route for route, needed in NEEDED.items() if needed])
async def test_a_key_without_scopes_is_refused_everywhere(route: str) -> None:
    with pytest.raises(Forbidden) as refusal:
        await check_scope(request(route, frozenset()))
    assert refusal.value.code == "insufficient_permissions"
    await check_scope(request(route, frozenset(Scope)))


async def test_the_refusal_says_what_is_needed_and_what_is_there() -> None:
    with pytest.raises(Forbidden, match=r"needs the scope 'inference', and has 'read' and 'admin'"):
        await check_scope(request("POST /v1/responses", frozenset({Scope.READ, Scope.ADMIN})))
