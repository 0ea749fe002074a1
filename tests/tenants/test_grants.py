"""Grants: who signs in as which key, by what an issuer says of them."""

from typing import Any

import pytest

from axon.tenants.grants import Grant, granted, grants_of, subject_of

GRANTS = (Grant("platform", "k0000001"), Grant("staff", "k0000002"), Grant("ada@example.com", "k0000003"))


def test_the_setting_is_pairs_in_their_order() -> None:
    assert grants_of(" platform=k0000001, a=b=k0000002,,") == (Grant("platform", "k0000001"), Grant("a=b", "k0000002"))
    assert grants_of("") == ()


@pytest.mark.parametrize("text", ["platform", "=k0000001", "platform=", "a=b,c"])
def test_half_a_pair_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        grants_of(text)


@pytest.mark.parametrize(
    ("claims", "claim", "key_id"),
    [
        ({"groups": ["staff", "platform"]}, "groups", "k0000001"),
        ({"groups": ["staff"]}, "groups", "k0000002"),
        ({"groups": "staff"}, "groups", "k0000002"),
        ({"groups": "staffx"}, "groups", None),
        ({"groups": []}, "groups", None),
        ({"groups": [None, 7, {"staff": 1}, ["staff"]]}, "groups", None),
        ({"groups": {"staff": True}}, "groups", None),
        ({}, "groups", None),
        ({"email": "ada@example.com", "email_verified": True}, "email", "k0000003"),
        ({"email": "ada@example.com", "email_verified": "true"}, "email", None),
        ({"email": "ada@example.com"}, "email", None),
    ],
)
def test_the_first_grant_that_fits_counts(claims: dict[str, Any], claim: str, key_id: str | None) -> None:
    assert granted(claims, claim, GRANTS) == key_id


def test_a_subject_is_short_and_printable() -> None:
    assert subject_of({"sub": "person\x00\n1"}) == "person??1"
    assert len(subject_of({"sub": "x" * 1000})) == 200
    assert subject_of({}) == ""
