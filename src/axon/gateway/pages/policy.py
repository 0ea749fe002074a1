"""The security headers of pages and their files: what a browser may load, run, frame and tell others. Knows no page."""

from collections.abc import Mapping

_CONTENT = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
"""No request leaves the server, no inline script or style runs, and no other page may frame ours."""
_PERMISSIONS = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
"""What no page of ours asks the browser for."""


def content_policy(changed: Mapping[str, str] | None = None) -> str:
    """Returns the value of Content-Security-Policy; ``changed`` directives take the place of the strict ones."""
    return "; ".join(f"{name} {value}" for name, value in {**_CONTENT, **(changed or {})}.items())


def page_headers(changed: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the headers of a page; ``changed`` is that of ``content_policy``."""
    return {
        "content-security-policy": content_policy(changed),
        "permissions-policy": ", ".join(f"{name}=()" for name in _PERMISSIONS),
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        **asset_headers(),
    }


def asset_headers() -> dict[str, str]:
    """Returns the headers of every answer that a page is made of."""
    return {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
    }
