"""An ID token: whether it is the issuer's, for us, for this attempt, and of now. No I/O, no clock."""

import hmac
from collections.abc import Mapping
from typing import Any, Final

import jwt

from axon.errors import Unauthenticated

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key alone: with a shared secret, or none, whoever knows the client's id could sign."""
_LEEWAY_S: Final = 60.0
"""Seconds by which the issuer's clock and ours may differ."""
_NEEDED: Final = ("iss", "aud", "exp", "iat", "sub")


class PublicKeys:
    """The issuer's public keys, from its JSON Web Key Set."""

    def __init__(self, content: bytes) -> None:
        """Raises ``ValueError`` for what is no set of keys."""
        try:
            self._keys = jwt.PyJWKSet.from_json(content.decode()).keys
        except (jwt.PyJWTError, AttributeError, TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error

    def has_key_of(self, token: str) -> bool:
        """Whether the token's key is among them, as far as the token names one."""
        return self.key_of(token) is not None

    def key_of(self, token: str) -> jwt.PyJWK | None:
        """The key that the token says it is signed with; the only one where it says nothing."""
        try:
            name = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError:
            return None
        signing = [key for key in self._keys if key.public_key_use in (None, "sig")]
        named = [key for key in signing if name is None or key.key_id == name]
        return named[0] if len(named) == 1 or (named and name is not None) else None


def checked_claims(
    token: str, keys: PublicKeys, *, issuer: str, client_id: str, nonce: str, now: float
) -> Mapping[str, object]:
    """Returns what the token says; raises ``Unauthenticated`` if it cannot be believed."""
    key = keys.key_of(token)
    if key is None:
        raise _unbelieved("its key is not the issuer's")
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[each for each in _ALGORITHMS if _fits(each, key)],
            audience=client_id,
            issuer=issuer,
            # Times are checked below, by the clock that is passed in.
            options={"require": list(_NEEDED), "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise _unbelieved(type(error).__name__) from error
    if problem := _problem_of(claims, client_id, nonce, now):
        raise _unbelieved(problem)
    return claims


def _problem_of(claims: Mapping[str, Any], client_id: str, nonce: str, now: float) -> str:
    """What is wrong with the claims of a token whose signature, issuer and audience are right; empty if nothing is."""
    times = [claims[name] for name in ("exp", "iat")] + [claims.get("nbf", 0)]
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in times):
        return "a time in it is no number"
    if claims["exp"] <= now - _LEEWAY_S:
        return "it has expired"
    if max(claims["iat"], times[2]) > now + _LEEWAY_S:
        return "it is not valid yet"
    is_of_several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if is_of_several else client_id) != client_id:
        return "it is for another party"
    said = claims.get("nonce")
    if not isinstance(said, str) or not hmac.compare_digest(said.encode(), nonce.encode()):
        return "it belongs to another attempt"
    return ""


def _fits(algorithm: str, key: jwt.PyJWK) -> bool:
    """Whether the key is one for this algorithm, so that a token cannot choose another use of it."""
    families = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("Ed",)}
    return algorithm.startswith(families.get(str(key.key_type), ()))


def _unbelieved(reason: str) -> Unauthenticated:
    return Unauthenticated(f"The issuer's token cannot be believed: {reason}.", code="oidc_token_refused")
