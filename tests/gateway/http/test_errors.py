"""Errors as clients get them: bounded, whatever of the client's own text they repeat."""

import msgspec
import pytest

from axon.errors import InvalidInput, NotFound
from axon.gateway.http.errors import clipped, encoded


def test_a_message_that_repeats_a_long_name_keeps_its_beginning_and_its_end() -> None:
    error = NotFound(f"The model '{'x' * 1_000_000}' does not exist. Did you mean 'echo'?")
    message = msgspec.json.decode(encoded(error))["error"]["message"]
    assert len(message) == 1000
    assert message.startswith("The model 'xxx")
    assert message.endswith("xxx' does not exist. Did you mean 'echo'?")


def test_the_name_of_a_field_is_bounded_too() -> None:
    body = encoded(InvalidInput("No.", param="metadata." + "x" * 1_000_000))
    assert len(body) < 2000


@pytest.mark.parametrize(("text", "most", "short"), [("abc", 3, "abc"), ("abcdefghij", 9, "abcde…hij"), ("", 3, "")])
def test_what_is_short_stays_whole(text: str, most: int, short: str) -> None:
    assert clipped(text, most) == short
