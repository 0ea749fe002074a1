"""The values of a web session: what the cookie holds, what the store keeps, and when it is over."""

import pytest

from axon.domain.tenants.web_session import (
    WebSession,
    csrf_token,
    end_of,
    is_cookie_value,
    new_cookie_value,
    session_id,
)


def test_cookie_values_are_random_and_their_id_and_token_tell_nothing_of_them() -> None:
    values = {new_cookie_value() for _ in range(100)}
    assert len(values) == 100
    assert all(is_cookie_value(value) for value in values)
    value = values.pop()
    assert session_id(value) == session_id(value) != csrf_token(value)
    assert value not in session_id(value) + csrf_token(value)
    assert session_id(value) not in {session_id(other) for other in values}
    assert csrf_token(value) not in {csrf_token(other) for other in values}


@pytest.mark.parametrize("text", ["", "a" * 42, "a" * 44, "a" * 42 + ";", "é" * 43, "a" * 42 + " ", "a" * 10_000])
def test_what_cannot_be_a_value_is_known_without_a_look_at_the_store(text: str) -> None:
    assert not is_cookie_value(text)


@pytest.mark.parametrize(("now", "ends_at"), [(0.0, 10.0), (50.0, 60.0), (95.0, 100.0), (100.0, 100.0)])
def test_use_puts_the_end_off_until_the_lifetime_is_over(now: float, ends_at: float) -> None:
    assert end_of(0.0, now, idle_s=10.0, lifetime_s=100.0) == ends_at


def test_a_session_is_valid_until_it_ends() -> None:
    session = WebSession(id="a", key_id="k", created_at=0.0, ends_at=10.0)
    assert session.valid(9.99)
    assert not session.valid(10.0)
