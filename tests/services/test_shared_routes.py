"""Applications that read their routes together answer each for itself."""

from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, routing

router = APIRouter(prefix="/things")


@router.get("/{number}")
async def thing(request: Request, number: int, times: int = 1) -> dict[str, Any]:
    return {"app": request.app.state.name, "product": number * times}


async def refuse() -> None:
    raise HTTPException(status_code=403)


def made(name: str, *dependencies: Any, prefix: str = "") -> FastAPI:
    app = FastAPI(dependencies=list(dependencies))
    app.state.name = name
    app.include_router(router, prefix=prefix)
    return app


async def asked(app: FastAPI, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://axon") as http:
        return await http.get(path)


def read(app: FastAPI) -> Any:
    [included] = [route for route in app.router.routes if isinstance(route, routing._IncludedRouter)]
    return included.effective_candidates()[0]


async def test_two_applications_read_a_route_once_and_each_has_its_own_state() -> None:
    one, other = made("one"), made("other")
    assert read(one) is read(other)
    assert (await asked(one, "/things/7?times=2")).json() == {"app": "one", "product": 14}
    assert (await asked(other, "/things/7")).json() == {"app": "other", "product": 7}
    assert (await asked(other, "/things/seven")).status_code == 422


@pytest.mark.parametrize(("dependencies", "prefix", "status"), [((Depends(refuse),), "", 403), ((), "/v2", 200)])
async def test_a_route_that_is_included_otherwise_is_another(
    dependencies: tuple[Any, ...], prefix: str, status: int
) -> None:
    plain, other = made("plain"), made("other", *dependencies, prefix=prefix)
    assert read(plain) is not read(other)
    assert (await asked(plain, "/things/7")).status_code == 200
    assert (await asked(other, f"{prefix}/things/7")).status_code == status
