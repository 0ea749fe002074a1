"""The cookie of a web session at the level of HTTP, and where a request came from. Knows no session.

A browser sends the cookie with every request to the server, whichever page made it. So a request with the cookie counts
only if no other site's page made it, and one that may change something needs a token that only our own pages know.
"""

import hmac
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from axon.errors import Forbidden, Unauthenticated

COOKIE = "axon_session"
ATTEMPT_COOKIE = "axon_oidc"
CSRF_HEADER = b"x-axon-csrf"
WEB_SESSION = "axon.web_session"
"""Key of the ASGI scope under which the cookie's value of a request that was let in by it is kept."""
_OWN_SITE = frozenset({b"same-origin", b"none"})
"""Values of Sec-Fetch-Site of a request that our own page made, or a person by typing the address. Another port of the
same host is ``same-site``: it gets the cookie too, and is not ours."""
_SAFE = frozenset({"GET", "HEAD"})
"""Methods that change nothing."""

Headers = Iterable[tuple[bytes, bytes]]


def cookie_values(headers: Headers) -> list[str]:
    """Returns the values of all cookies with the session's name."""
    return _values(headers, COOKIE)


def attempt_value(headers: Headers) -> str:
    """Returns the value of the cookie of an attempt to sign in by OpenID Connect; empty where there is none, or two."""
    values = _values(headers, ATTEMPT_COOKIE)
    return values[0] if len(values) == 1 else ""


def _values(headers: Headers, wanted: str) -> list[str]:
    found: list[str] = []
    for name, value in headers:
        if name != b"cookie":
            continue
        for pair in value.decode("latin-1").split(";"):
            key, _, text = pair.strip().partition("=")
            if key == wanted:
                found.append(text)
    return found


def only_value(values: Sequence[str]) -> str:
    """Returns the cookie's value; raises ``Unauthenticated`` where there are two, of which a neighbouring host may have
    set one."""
    if len(set(values)) > 1:
        raise Unauthenticated(
            f"Your browser sent two cookies named {COOKIE}; delete this site's cookies and sign in again.",
            code="session_ended",
        )
    return values[0]


def check_own_page(headers: Headers) -> None:
    """Raises ``Forbidden`` if a page of another origin made the request, as far as the browser says it."""
    found = dict(headers)
    site, origin = found.get(b"sec-fetch-site"), found.get(b"origin")
    if site is not None and site not in _OWN_SITE:
        raise _foreign()
    if origin is not None and site is None and not _is_own(origin, found.get(b"host", b"")):
        raise _foreign()


def check_csrf(method: str, headers: Headers, token: str) -> None:
    """Raises ``Forbidden`` if a request that may change something comes without the session's token."""
    if method in _SAFE:
        return
    given = next((value for name, value in headers if name == CSRF_HEADER), b"")
    if not hmac.compare_digest(given, token.encode()):
        raise Forbidden(
            "A request with the cookie of a signed-in browser needs the token of its page in the header x-axon-csrf. "
            "Reload the page; a program sends its API key instead.",
            code="csrf",
        )


def session_cookie(value: str, *, path: str, is_secure: bool, max_age_s: float) -> str:
    """Returns the Set-Cookie header of a session; with an empty value and no time left, it deletes the cookie."""
    return set_cookie(COOKIE, value, path=path, is_secure=is_secure, max_age_s=max_age_s)


def set_cookie(
    name: str, value: str, *, path: str, is_secure: bool, max_age_s: float, same_site: str = "Strict"
) -> str:
    """Returns a Set-Cookie header. No script can read the cookie, and other sites' pages make no request with it."""
    secure = "; Secure" if is_secure else ""
    return f"{name}={value}; Path={path}; Max-Age={int(max_age_s)}; HttpOnly; SameSite={same_site}{secure}"


def _is_own(origin: bytes, host: bytes) -> bool:
    try:
        netloc = urlsplit(origin.decode("latin-1")).netloc
    except ValueError:
        return False  # no browser's page has such an origin
    return netloc.lower() == host.decode("latin-1").lower() != ""


def _foreign() -> Forbidden:
    return Forbidden("A page of another site may not act as the person who is signed in here.", code="cross_site")
