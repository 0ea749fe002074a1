"""An event has the same JSON by both transports, except for errors and the lane's name."""

import json

import pytest

from axon.errors import Overloaded
from axon.gateway.responses.envelope import SSE, SocketMessages


@pytest.mark.parametrize("stream_id", [None, "", "a\nb"])
def test_an_event_is_the_same_by_both(stream_id: str | None) -> None:
    head, data, *rest = SSE.event("response.queued", 1, {"text": "é\n\u2028"}).split(b"\n")
    [line] = SocketMessages(stream_id).event("response.queued", 1, {"text": "é\n\u2028"}).splitlines()
    assert (head, rest) == (b"event: response.queued", [b"", b""])
    told = json.loads(line)
    assert told.pop("stream_id", None) == stream_id
    assert told == json.loads(data.removeprefix(b"data: "))


def test_an_error_over_a_socket_has_its_details_in_an_object_and_the_time_to_retry() -> None:
    error = json.loads(SocketMessages("a").error(Overloaded(retry_after_s=2.0), 7))
    assert (error["type"], error["status"], error["sequence_number"], error["stream_id"]) == ("error", 503, 7, "a")
    assert error["error"]["headers"]["retry-after-ms"] == "2000"
    assert "sequence_number" not in json.loads(SocketMessages().error(Overloaded()))
    assert json.loads(SSE.error(Overloaded(), 7).split(b"data: ")[1])["code"] == error["error"]["code"]
