"""/v1/responses over a WebSocket, as the official client speaks it: many responses, lanes, and streams that resume."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.connection import Connection

from tests.journeys.conftest import Fresh
from tests.journeys.events import resume, start
from tests.journeys.server import Server, wait_until
from tests.journeys.test_responses import client

ASK: dict[str, Any] = {"model": "echo", "temperature": 0}
LONG: dict[str, Any] = {**ASK, "input": "The quick brown fox. " * 20, "max_output_tokens": 300}
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "error")


def opened(server: Server, query: str = "", **headers: str) -> ClientConnection:
    """A WebSocket without any client of OpenAI's."""
    address = server.url.replace("http://", "ws://") + "/v1/responses" + query
    return connect(address, additional_headers={"Authorization": f"Bearer {server.key}", **headers}, open_timeout=60)


def send(line: Connection, **event: Any) -> None:
    line.send(json.dumps(event))


def events(line: Connection) -> Iterator[dict[str, Any]]:
    """What comes, up to the end of a response."""
    while True:
        event = json.loads(line.recv(timeout=60))
        yield event
        if event["type"] in TERMINAL:
            return


def one(line: Connection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line.recv(timeout=60))
    return found


@pytest.mark.everywhere
def test_the_official_client_creates_responses_one_after_another(echo: Server) -> None:
    with client(echo) as api, api.responses.connect() as line:
        line.response.create(**ASK, input="hello there")
        got = []
        for event in line:
            got.append(event)
            if event.type == "response.completed":
                break
        assert [event.sequence_number for event in got] == list(range(len(got)))
        first = got[-1].response
        assert first.output_text == "user: hello there\nassistant:"
        line.response.create(**ASK, input="and then", previous_response_id=first.id)
        second = next(event.response for event in line if event.type == "response.completed")
        assert second.previous_response_id == first.id
        assert api.responses.retrieve(second.id).output_text == second.output_text


async def test_the_official_asynchronous_client_does_too(echo: Server) -> None:
    api: Any = openai.AsyncOpenAI(base_url=f"{echo.url}/v1", api_key=echo.key, max_retries=0)
    async with api, api.responses.connect() as line:
        await line.response.create(**ASK, input="hello there")
        async for event in line:
            if event.type == "response.completed":
                assert event.response.output_text == "user: hello there\nassistant:"
                break


def test_the_events_are_those_of_the_stream_over_http(slow: Server) -> None:
    with opened(slow) as line:
        send(line, type="response.create", **LONG)
        got = list(events(line))
    assert got == [json.loads(event.data) for event in resume(slow, got[0]["response"]["id"])]


def test_lanes_run_beside_each_other_and_one_after_another_within(slow: Server) -> None:
    with client(slow) as api, api.responses.connect() as line:
        line.response.create(**LONG, stream_id="a")
        line.response.create(**{**ASK, "input": "later"}, stream_id="a")
        line.response.create(**{**ASK, "input": "short"}, stream_id="b")
        ends: list[tuple[str, str]] = []
        begun: list[str] = []
        for event in line:
            if event.type == "response.created":
                begun.append(event.stream_id)
            if event.type in TERMINAL:
                ends.append((event.stream_id, event.response.output_text[:12]))
                if len(ends) == 3:
                    break
    assert sorted(begun[:2]) == ["a", "b"]
    assert ends[0] == ("b", "user: short\n")
    assert [text for lane, text in ends if lane == "a"] == ["user: The qu", "user: later\n"]


def test_a_wrong_key_is_refused_before_the_upgrade(echo: Server) -> None:
    for headers in ({"Authorization": "Bearer axk_wrong"}, {"Authorization": ""}):
        with pytest.raises(InvalidStatus) as refused:
            opened(echo, **headers)
        reply = refused.value.response
        assert reply.status_code == 401
        assert json.loads(reply.body or b"")["error"]["code"] == "invalid_api_key"
    assert "handshake" not in echo.log, "anybody could fill the log"


def test_a_message_that_is_no_event_is_answered_with_an_error_and_the_socket_goes_on(echo: Server) -> None:
    wrong = {
        "{": "invalid_json",
        "[]": "invalid_event",
        "{}": "invalid_event",
        '{"type": "session.update"}': "unknown_event",
        '{"type": "response.retrieve"}': "missing_required_parameter",
        '{"type": "response.create", "model": "echo"}': "missing_required_parameter",
        '{"type": "response.create", "model": "nothing", "input": "a"}': "model_not_found",
        '{"type": "response.create", "model": "echo", "input": "a", "background": true}': "unsupported_parameter",
        '{"type": "response.create", "model": "echo", "input": "a", "stream": false}': "unsupported_parameter",
        '{"type": "response.create", "model": "echo", "input": "a", "temperature": 9}': "invalid_value",
    }
    with opened(echo) as line:
        for text, code in wrong.items():
            line.send(text)
            event = one(line)
            assert (event["type"], event["error"]["code"]) == ("error", code), text
            assert event["status"] in (400, 404)
        send(line, type="response.create", **ASK, input="hello", stream_id="a")
        assert {event["stream_id"] for event in events(line)} == {"a"}


def test_steering_is_refused_in_the_protocols_own_words(echo: Server) -> None:
    with client(echo) as api, api.responses.connect() as line:
        line.response.steer(previous_response_id="resp_1", input="faster")
        event = next(iter(line))
        assert (event.type, event.error.code) == ("response.steer.failed", "steering_not_supported")
        assert (event.steer.input, event.steer.previous_response_id) == ("faster", "resp_1")


def test_a_response_is_cancelled_over_the_socket(slow: Server) -> None:
    with opened(slow) as line:
        send(line, type="response.create", **{**LONG, "max_output_tokens": 4000, "ignore_eos": True})
        response_id = one(line)["response"]["id"]
        send(line, type="response.cancel", response_id=response_id)
        last = list(events(line))[-1]
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")


@pytest.mark.parametrize("by", ["query", "event"])
def test_a_stream_is_resumed_at_any_event(slow: Server, by: str) -> None:
    response_id, whole = start(slow, LONG)
    after = whole[len(whole) // 2].number
    query = f"?response_id={response_id}&starting_after={after}&stream_id=x" if by == "query" else ""
    with opened(slow, query) as line:
        if by == "event":
            send(line, type="response.retrieve", response_id=response_id, starting_after=after, stream_id="x")
        rest = list(events(line))
    assert {event.pop("stream_id") for event in rest} == {"x"}
    assert rest == [json.loads(event.data) for event in whole[after + 1 :]]


def test_an_unknown_response_is_an_error_event(slow: Server) -> None:
    with opened(slow, "?response_id=resp_nothing") as line:
        event = one(line)
        assert (event["status"], event["error"]["code"]) == (404, "response_not_found")


def test_a_create_that_is_repeated_with_its_key_is_the_same_response(echo: Server) -> None:
    ids = set()
    for _ in range(2):
        with opened(echo) as line:
            send(line, type="response.create", **ASK, input="once", idempotency_key="socket-once")
            ids.add(list(events(line))[-1]["response"]["id"])
    assert len(ids) == 1


@pytest.mark.everywhere
def test_the_official_client_reconnects_to_exactly_the_rest_after_the_server_was_killed(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    seen: dict[str, Any] = {"response_id": "", "starting_after": -1}

    def again(_: Any) -> dict[str, Any]:
        return {"extra_query": {name: str(value) for name, value in seen.items()}}

    numbers, texts = [], []
    with client(server) as api, api.responses.connect(on_reconnecting=again, max_retries=40, max_delay=1.0) as line:
        line.response.create(**LONG)
        for event in line:
            numbers.append(event.sequence_number)
            seen["starting_after"] = event.sequence_number
            if event.type == "response.created":
                seen["response_id"] = event.response.id
            if event.type == "response.output_text.delta":
                texts.append(event.delta)
            if len(numbers) == 40:
                server.kill()
                server.start_again()
            if event.type in TERMINAL:
                break
        assert event.type == "response.incomplete"  # it is as long as it may be
        assert numbers == list(range(len(numbers)))
        assert event.response.output_text == "".join(texts)


def test_the_stream_goes_on_when_the_engine_is_killed(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    with opened(server) as line:
        send(line, type="response.create", **LONG)
        got = []
        for event in events(line):
            got.append(event)
            if len(got) == 30:
                for pid in server.engine_pids():
                    os.kill(pid, signal.SIGKILL)
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    assert got[-1]["type"] == "response.incomplete"


def test_a_stopping_server_closes_idle_sockets_with_1012_and_lets_responses_end(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    with opened(server) as idle, opened(server) as busy:
        send(busy, type="response.create", **LONG)
        while (
            one(busy)["type"] != "response.output_text.delta"
        ):  # one that no worker has begun waits for another server
            pass
        assert server.stop() == 0
        *_, last = events(busy)
        assert last["type"] == "response.incomplete", last
        for line in (idle, busy):
            with pytest.raises(ConnectionClosed) as closed:
                line.recv(timeout=60)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012


def test_a_server_that_goes_away_before_the_end_says_1001_and_the_stream_can_be_resumed(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02, lifecycle_drain_s=0.3)
    with opened(server) as line:
        send(line, type="response.create", **LONG)
        response_id = one(line)["response"]["id"]
        server.stop()
        got = list(events(line))
        assert got[-1]["error"]["code"] == "draining"
        with pytest.raises(ConnectionClosed) as closed:
            line.recv(timeout=60)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
    server.start_again()
    with opened(server, f"?response_id={response_id}&starting_after={got[-2]['sequence_number']}") as line:
        rest = list(events(line))
    assert rest[0]["sequence_number"] == got[-2]["sequence_number"] + 1
    assert rest[-1]["type"] == "response.incomplete"


def test_a_tenant_has_as_many_sockets_as_it_may_and_each_ends_at_its_time_limit(fresh: Fresh) -> None:
    server = fresh.start(gateway_max_tenant_sockets=2, gateway_socket_lifetime_s=2.0)
    with opened(server) as first, opened(server) as second:
        with pytest.raises(InvalidStatus) as refused:
            opened(server)
        assert refused.value.response.status_code == 429
        assert b"too_many_sockets" in (refused.value.response.body or b"")
        for line in (first, second):
            assert one(line)["error"]["code"] == "websocket_connection_limit_reached"
            with pytest.raises(ConnectionClosed) as closed:
                line.recv(timeout=60)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
    wait_until(lambda: server.metric("axon_sockets") == 0, "both have ended")
    opened(server).close()
