"""The port of identities: an OpenID Connect issuer says who somebody is. Knows no key and no session."""

from collections.abc import Mapping
from typing import Protocol


class Issuer(Protocol):
    """Sends people to the issuer's own page and takes what they come back with."""

    async def address(self, *, state: str, nonce: str, challenge: str) -> str:
        """The address of the issuer's page; ``challenge`` is the PKCE digest (S256). Raises ``DependencyDown`` when the
        issuer does not answer."""

    async def claims(self, code: str, *, verifier: str, nonce: str) -> Mapping[str, object]:
        """What the issuer says of whoever came back with the code. Raises ``Unauthenticated`` when the code is not good
        or what comes for it cannot be believed, and ``DependencyDown`` when the issuer does not answer."""
