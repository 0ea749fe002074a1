"""The route of /v1/admin/settings: the settings that hold in the process that answers. Shows no secret."""

from dataclasses import asdict, dataclass
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.gateway.admin.bodies import admin_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInEffect:
    """One setting as it holds, and where its value comes from."""

    id: str
    """Its dotted name."""
    value: object
    """Its value as it may be shown: of a secret nothing, of a URL all but its password."""
    origin: str
    """``default``, ``flag``, the name of an environment variable, or the path of a file."""
    default: str
    type: str
    variable: str
    """The environment variable that sets it."""
    meaning: str


@router.get("", summary="List settings in effect")
async def show(request: Request) -> dict[str, Any]:
    """Lists every setting of the process that answers, which ``process`` names: its value and where that comes from, as
    `axon config show` does for the command line's own. Secrets are hidden."""
    admin = admin_of(request)
    data = [{"object": "setting", **asdict(each)} for each in admin.settings()]
    return {"object": "list", "process": admin.process, "data": data, "has_more": False}
