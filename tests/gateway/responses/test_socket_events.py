"""What a client sends over a WebSocket becomes an event, or an error that names what is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import InvalidInput
from axon.gateway.responses.socket_events import ClientEvent, event_of, steer_refusal


def test_an_event_has_its_lane_its_position_and_its_body() -> None:
    text = '{"type": "response.create", "stream_id": "a", "input": "é", "idempotency_key": "k"}'
    assert event_of(text) == ClientEvent(type="response.create", stream_id="a", idempotency_key="k", body=text.encode())
    text = '{"type": "response.retrieve", "response_id": "resp_1", "starting_after": 0}'
    assert event_of(text).starting_after == "0"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_json"),
        ("nothing", "invalid_json"),
        ('{"a":' * 5000, "invalid_json"),
        ('{"type": 1}', "invalid_event"),
        ('{"type": "response.create", "stream_id": 1}', "invalid_event"),
        ('{"type": "response.retrieve", "response_id": "r", "starting_after": "1"}', "invalid_event"),
        ('{"type": "response.cancel"}', "missing_required_parameter"),
        ('{"type": "nothing"}', "unknown_event"),
        (json.dumps({"type": "response.create", "stream_id": "a" * 256}), "invalid_value"),
    ],
)
def test_what_is_no_event_is_refused(text: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        event_of(text)
    assert refused.value.code == code


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    with pytest.raises(InvalidInput):
        event_of(text)


def test_a_refusal_to_steer_gives_the_input_back_unless_it_is_long() -> None:
    event = event_of('{"type": "response.steer", "previous_response_id": "resp_1", "input": [{"role": "user"}]}')
    refusal = steer_refusal(event)
    assert bytes(refusal["steer"]["input"]) == b'[{"role": "user"}]'
    long = json.dumps({"type": "response.steer", "input": "a" * 100_000})
    assert steer_refusal(event_of(long))["steer"]["input"] == []
