"""What the pages' routes share. Values only."""

from dataclasses import dataclass

from starlette.requests import Request

from axon.gateway.config import GatewayConfig
from axon.gateway.pages.assets import Assets
from axon.gateway.pages.sign_in import SignIn
from axon.gateway.pages.web_sessions import WebSessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The parts that the pages' routes use; ``bootstrap`` makes them and passes them in."""

    sign_in: SignIn
    sessions: WebSessions
    assets: Assets
    config: GatewayConfig
    version: str


def pages_of(request: Request) -> Pages:
    """Returns the pages' parts of the application that received the request."""
    pages: Pages = request.app.state.pages
    return pages
