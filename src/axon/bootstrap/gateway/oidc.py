"""Assembles signing in by OpenID Connect, where an issuer is configured."""

from pathlib import Path
from typing import TYPE_CHECKING

from axon.bootstrap.services import load_pepper
from axon.errors import Misconfigured
from axon.ports.live import Cache
from axon.runtime.clock import Clock
from axon.settings import Settings
from axon.tenants.grants import grants_of

if TYPE_CHECKING:
    from axon.gateway.pages.oidc import OidcSignIn


def make_oidc(settings: Settings, cache: Cache, clock: Clock) -> "OidcSignIn | None":
    """Returns what signs people in by the issuer; None where there is none."""
    config = settings.gateway
    if not config.oidc_issuer:
        return None
    try:
        from axon.adapters.oidc.issuer import OidcIssuer
    except ModuleNotFoundError as error:
        raise Misconfigured(
            f"gateway.oidc_issuer needs the package {error.name}: pip install 'axon-serving[oidc]'."
        ) from None
    from axon.gateway.pages.oidc import OidcSignIn

    issuer = OidcIssuer(
        config.oidc_issuer,
        clock,
        client_id=config.oidc_client_id,
        secret=_secret(config.oidc_secret_file),
        redirect_url=config.oidc_redirect_url,
        scope=config.oidc_scope,
    )
    return OidcSignIn(
        issuer,
        cache,
        clock,
        pepper=load_pepper(settings),
        claim=config.oidc_claim,
        grants=grants_of(config.oidc_keys),
    )


def _secret(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"gateway.oidc_secret_file cannot be read: {error}.") from None
