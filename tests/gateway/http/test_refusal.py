"""An error is answered in the shape of the API that was asked."""

import json

import pytest

from axon.errors import LimitReached, Overloaded
from axon.gateway.http.refusal import refusal_of


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens", "/v1/messages/nothing"])
def test_on_anthropics_paths_in_anthropics(path: str) -> None:
    refusal = refusal_of(Overloaded(retry_after_s=1.5), path, "req_1")
    body = json.loads(refusal.body)
    assert (refusal.status, body["type"], body["error"]["type"]) == (529, "error", "overloaded_error")
    assert body["request_id"] == "req_1"
    assert (refusal.headers["retry-after"], refusal.headers["retry-after-ms"]) == ("2", "1500")
    assert refusal.headers["x-should-retry"] == "true"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/streams/msg_1"])
def test_on_all_others_in_openais(path: str) -> None:
    refusal = refusal_of(LimitReached(), path, "req_1")
    assert (refusal.status, json.loads(refusal.body)["error"]["code"]) == (429, "rate_limit_exceeded")


def test_a_status_of_the_callers_takes_the_place_of_the_errors_own() -> None:
    refusal = refusal_of(Overloaded(), "/v1/messages", "", status=404)
    assert (refusal.status, json.loads(refusal.body)["error"]["type"]) == (404, "not_found_error")
