"""Whether a request comes from this machine itself. Knows no route and no key."""

from starlette.types import Scope

from axon.runtime.loopback import is_loopback

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"})
"""Headers of a request that came through a proxy."""


def is_over_loopback(scope: Scope) -> bool:
    """Whether a request came over loopback, to a name of loopback and through no proxy.

    The name in the Host header is checked because a web page may have its own name point to loopback (DNS rebinding).
    HTTP/1.0 is what older releases of nginx speak to a server behind them. A proxy on this machine that speaks HTTP/1.1
    and adds none of the headers cannot be told from a program.
    """
    headers = scope["headers"]
    if scope["http_version"] == "1.0" or any(name in _FORWARDED for name, _ in headers):
        return False
    host = next((value.decode("latin-1").lower() for name, value in headers if name == b"host"), "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name in _LOCAL_NAMES and is_loopback((scope.get("client") or ("",))[0])
