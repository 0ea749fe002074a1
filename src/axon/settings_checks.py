"""Checks of settings against each other, after each was read. Reads no setting itself."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from axon.domain.fleet.replica import parse_replica
from axon.errors import Misconfigured
from axon.gateway.config import GatewayConfig
from axon.runtime.config import LifecycleConfig
from axon.runtime.loopback import is_loopback_host
from axon.runtime.path_prefix import is_prefix
from axon.tenants.grants import grants_of
from axon.worker.config import WorkerConfig

_MOST_LAG_EVERY_S = 5.0
_CALLBACK = "/ui/oidc/callback"
_WORKER_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_REPLICA_CHARS = 200
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_ORIGIN = re.compile(
    r"\*|(?!https://[^/]*:443$|http://[^/]*:80$)"
    r"[a-z][a-z0-9+.-]*://([a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?"
)
"""An origin as browsers write it (RFC 6454): in lower case, without the port that its scheme has anyway. A setting that
is written otherwise would equal no browser's header."""


def _is_replica(name: str) -> bool:
    """Whether a launcher has given the name."""
    return len(name) <= _MAX_REPLICA_CHARS and parse_replica(name) is not None


def check_together(
    worker: WorkerConfig, gateway: GatewayConfig, lifecycle: LifecycleConfig, spelled: Mapping[str, str]
) -> None:
    """Raises ``Misconfigured`` for settings that contradict each other; ``spelled`` has the flags as written."""
    if worker.renew_s >= worker.lease_s:
        raise Misconfigured(
            f"worker.renew_s ({worker.renew_s}) must be less than worker.lease_s ({worker.lease_s}), "
            "else a healthy worker is taken for dead."
        )
    if lifecycle.lag_every_s > _MOST_LAG_EVERY_S:
        raise Misconfigured(
            f"lifecycle.lag_every_s must be at most {_MOST_LAG_EVERY_S:g}, not {lifecycle.lag_every_s:g}: "
            "/livez would call the process stuck."
        )
    if worker.name and not _WORKER_NAME.fullmatch(worker.name) and not _is_replica(worker.name):
        raise Misconfigured(
            f"worker.name must have 1 to 64 letters, digits, dots, dashes or underscores, not {worker.name!r}."
        )
    if gateway.port == gateway.metrics_port != 0:
        api, metrics = (spelled.get(name, name) for name in ("gateway.port", "gateway.metrics_port"))
        raise Misconfigured(
            f"{api} and {metrics} are both {gateway.port}. Choose another --metrics-port (AXON_GATEWAY_METRICS_PORT)."
        )
    if gateway.ollama_without_key and gateway.host not in _LOOPBACK:
        raise Misconfigured(
            f"gateway.ollama_without_key needs a loopback host, not {gateway.host}: without a key anybody who reaches "
            "the port could ask. Unset one of them."
        )
    if gateway.ollama_without_key and gateway.proxies > 0:
        raise Misconfigured(
            f"gateway.ollama_without_key cannot be used behind a proxy, and gateway.proxies is {gateway.proxies}: "
            "every client of a proxy on this machine would count as a program on it. Unset one of them."
        )
    if gateway.path_prefix and not is_prefix(gateway.path_prefix):
        raise Misconfigured(
            f"gateway.path_prefix must be a path such as /axon, with no slash at its end, not {gateway.path_prefix!r}."
        )
    if gateway.oidc_issuer:
        _check_oidc(gateway)
    for origin in filter(None, map(str.strip, gateway.cors_origins.split(","))):
        if not _ORIGIN.fullmatch(origin):
            raise Misconfigured(
                f"gateway.cors_origins must have origins as browsers send them, not {origin!r}: "
                "https://chat.example.com or http://localhost:3000, in lower case, without a path, a pattern or the "
                "scheme's own port."
            )


def _check_oidc(gateway: GatewayConfig) -> None:
    """Raises ``Misconfigured`` for an issuer by which nobody could sign in, or not safely."""
    for name in ("oidc_issuer", "oidc_redirect_url"):
        address = urlsplit(getattr(gateway, name))
        is_safe = address.scheme == "https" or (address.scheme == "http" and is_loopback_host(address.hostname or ""))
        if not is_safe or not address.hostname or address.query or address.fragment:
            raise Misconfigured(f"gateway.{name} must be an https address without a query, not {address.geturl()!r}.")
    if not gateway.oidc_redirect_url.endswith(_CALLBACK):
        raise Misconfigured(f"gateway.oidc_redirect_url must end with {_CALLBACK}, not {gateway.oidc_redirect_url!r}.")
    if not gateway.oidc_client_id:
        raise Misconfigured("gateway.oidc_client_id must be set beside gateway.oidc_issuer, which gave it.")
    try:
        grants = grants_of(gateway.oidc_keys)
    except ValueError as error:
        raise Misconfigured(f"gateway.oidc_keys must have pairs such as platform=k1a2b3c4, not {error}.") from None
    if not grants:
        raise Misconfigured("gateway.oidc_keys is empty: nobody could sign in by gateway.oidc_issuer.")
    if "openid" not in gateway.oidc_scope.split():
        raise Misconfigured("gateway.oidc_scope must have openid in it.")
