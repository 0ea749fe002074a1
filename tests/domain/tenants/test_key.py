"""API keys: a text that is found by its id and told from a typo without asking the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.tenants.key import Key, KeyText, digest, matches, new_key_text, parse_key

PEPPER = b"pepper"


def make_key(secret: str = "s", **changes: float | None) -> Key:
    return Key(id="k0000001", tenant="acme", digest=digest(PEPPER, secret), created_at=0.0, **changes)  # type: ignore[arg-type]


def test_a_new_key_is_read_back_from_its_text() -> None:
    for _ in range(50):
        key, text = new_key_text()
        assert parse_key(text) == key
        assert len(text) == len("axk_") + 8 + 1 + 43 + 6


def test_two_new_keys_differ_in_id_and_secret() -> None:
    (one, _), (two, _) = new_key_text(), new_key_text()
    assert one.id != two.id
    assert one.secret != two.secret


@given(st.integers(0, 61), st.characters(codec="ascii"))
def test_one_wrong_character_is_found_out(place: int, character: str) -> None:
    _, text = new_key_text()
    mistyped = text[:place] + character + text[place + 1 :]
    assert (parse_key(mistyped) is None) == (mistyped != text)


@pytest.mark.parametrize(
    "change", [str.upper, lambda text: text[:-1], lambda text: text + "a", lambda text: f" {text}"]
)
def test_a_text_of_another_shape_is_none(change: object) -> None:
    _, text = new_key_text()
    assert callable(change)
    assert parse_key(change(text)) is None


@given(st.text())
def test_any_other_text_is_none(text: str) -> None:
    assert parse_key(text) is None


def test_a_secret_is_not_in_what_is_printed() -> None:
    assert "secret" not in repr(KeyText("k0000001", "secret"))


def test_only_the_right_secret_with_the_right_pepper_matches() -> None:
    key = make_key("right")
    assert matches(key, PEPPER, "right")
    assert not matches(key, PEPPER, "wrong")
    assert not matches(key, b"other", "right")


def test_the_digest_does_not_hold_the_secret() -> None:
    assert b"right" not in digest(PEPPER, "right")
    assert len(digest(PEPPER, "right")) == 32


def test_a_key_is_valid_until_it_expires_or_is_revoked() -> None:
    assert make_key().valid(10.0)
    assert make_key(expires_at=10.0).valid(9.9)
    assert not make_key(expires_at=10.0).valid(10.0)
    assert not make_key(revoked_at=1.0).valid(10.0)
