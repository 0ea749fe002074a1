"""What the pages' routes share: the parts behind them, and how a page is answered."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from axon.gateway.config import GatewayConfig
from axon.gateway.pages.assets import Assets, answer
from axon.gateway.pages.oidc import OidcSignIn
from axon.gateway.pages.policy import page_headers
from axon.gateway.pages.rendering.renderer import Renderer
from axon.gateway.pages.sign_in import SignIn
from axon.gateway.pages.web_sessions import WebSessions


@dataclass(frozen=True, slots=True, kw_only=True)
class CliFlags:
    """How a command finds this server, told to administrators alone: the console shows the command of each action."""

    store: tuple[str, ...] = ()
    """Flags of commands that open the store."""
    server: tuple[str, ...] = ()
    """Flags of commands that ask a server over HTTP."""
    by_address: bool = False
    """Whether commands that ask a server need its address (``--url``) in place of ``server``: it may be on another
    machine."""
    variables: tuple[str, ...] = ()
    """Environment variables that commands on the store need as the server has them: no flag has them, or a secret is in
    them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The parts that the pages' routes use; ``bootstrap`` makes them and passes them in."""

    sign_in: SignIn
    sessions: WebSessions
    assets: Assets
    oidc: OidcSignIn | None = None
    """None where no issuer is configured."""
    renderer: Renderer
    config: GatewayConfig
    version: str
    cli: CliFlags = CliFlags()


def pages_of(request: Request) -> Pages:
    """Returns the pages' parts of the application that received the request."""
    pages: Pages = request.app.state.pages
    return pages


def page(request: Request, room: str, name: str) -> Response:
    """Returns a page, under the policy of all pages."""
    return answer(pages_of(request).assets.page(room, name), request.headers, page_headers())
