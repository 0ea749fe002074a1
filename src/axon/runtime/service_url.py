"""The URL of a service as it may be shown: never its password, also where somebody wrote it wrongly. Opens nothing."""

import re
from urllib.parse import unquote

HIDDEN = "(hidden)"
_SCHEME = re.compile(r"([a-z][a-z0-9+]{0,19})://")
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):[^/@]*@")
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;]*)=[^&;]*")
_SECRETS = ("pass", "secret", "token")
"""What the names of parameters with a secret have in them."""
_FILE = "sqlite:///"


def scheme_of(url: str) -> str:
    """What is before ``://``; empty where a text has no such beginning. Then it may be a password from its first
    letter on, and no part of it may be quoted."""
    found = _SCHEME.match(url)
    return found[1] if found else ""


def shown(url: str) -> str:
    """The URL without its password; ``(hidden)`` for a text in which nobody can tell where the password begins and
    ends, as one with a slash or an @ in it that is not written as %2F or %40."""
    if not url or url.startswith(_FILE):  # a file has no password, and any name
        return url
    if not scheme_of(url) or url.count("@") > 1 or "/" in url.partition("://")[2].rpartition("@")[0]:
        return HIDDEN
    return masked(url)


def masked(text: str) -> str:
    """A text that may be a URL or something else, as the source of a model, without the password of a URL."""
    return _PARAMETER.sub(_without_secret, _PASSWORD.sub(rf"\1:{HIDDEN}@", text)) if "://" in text else text


def cannot_be_on(service: str, url: str, use: str) -> str:
    """The sentence for a URL that no adapter takes: quotes its scheme, if it has one, and nothing else."""
    where = f"on {scheme_of(url)!r}" if scheme_of(url) else "on what its URL says, which has no scheme"
    return f"{service} cannot be {where}: use {use}."


def _without_secret(found: re.Match[str]) -> str:
    name = unquote(found[1]).lower()
    return f"{found[1]}={HIDDEN}" if any(each in name for each in _SECRETS) else found[0]
