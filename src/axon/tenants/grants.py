"""Grants: which people, as an OpenID Connect issuer names them, sign in as which key. Knows no issuer. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_MAX_SUBJECT_CHARS = 200


@dataclass(frozen=True, slots=True)
class Grant:
    """Whoever has this value of the claim signs in as this key."""

    value: str
    key_id: str


def grants_of(text: str) -> tuple[Grant, ...]:
    """Returns the grants in the setting ``gateway.oidc_keys``: ``value=key`` pairs, separated by commas.

    Raises ``ValueError`` for a pair without a value or a key.
    """
    found: list[Grant] = []
    for pair in filter(None, (each.strip() for each in text.split(","))):
        value, _, key_id = (each.strip() for each in pair.rpartition("="))
        if not value or not key_id:
            raise ValueError(pair)
        found.append(Grant(value, key_id))
    return tuple(found)


def granted(claims: Mapping[str, object], claim: str, grants: Sequence[Grant]) -> str | None:
    """Returns the id of the first key that is granted to one of the claim's values; None if there is none.

    An e-mail address counts only if the issuer has verified that it is this person's.
    """
    said = claims.get(claim)
    if claim == "email" and claims.get("email_verified") is not True:
        return None
    values = [each for each in said if isinstance(each, str)] if isinstance(said, list) else [said]
    return next((grant.key_id for grant in grants if grant.value in values), None)


def subject_of(claims: Mapping[str, object]) -> str:
    """Returns the issuer's own name for a person, which never changes, without what a database or a log cannot take."""
    text = str(claims.get("sub", ""))[:_MAX_SUBJECT_CHARS]
    return "".join(each if each.isprintable() else "?" for each in text)
