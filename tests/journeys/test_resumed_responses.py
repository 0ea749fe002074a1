"""A response's stream that breaks off is picked up at any event, while it runs, when it has ended, after a restart."""

import random
from typing import Any

import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.events import Event, resume, start, text_of
from tests.journeys.server import Server
from tests.journeys.test_chat import client

INPUT = "The quick brown fox jumps over the lazy dog — größer, 更大. " * 4


def ask(**fields: Any) -> dict[str, Any]:
    return {
        "model": "echo",
        "input": INPUT,
        "max_output_tokens": 300,
        "ignore_eos": True,
        "temperature": 0,
        "metadata": {"journey": "resume"},
        **fields,
    }


def data_of(stream: list[Event]) -> list[str]:
    return [event.data for event in stream]


@pytest.mark.parametrize("background", [False, True])
def test_a_stream_cut_many_times_is_the_same_stream(slow: Server, background: bool) -> None:
    rng = random.Random(7)
    response_id, got = start(slow, ask(background=background), num_events=rng.randint(1, 8))
    while not got[-1].last:
        got += resume(slow, response_id, after=got[-1].number, num_events=rng.randint(1, 60))
    assert [event.number for event in got] == list(range(len(got)))
    assert data_of(got) == data_of(resume(slow, response_id))
    assert text_of(got) == text_of(start(slow, ask())[1])


@pytest.mark.parametrize("after", [-1, 0, 1, 3, 150, "last but one", "last"])
def test_a_finished_stream_is_read_again_from_any_event(slow: Server, after: Any) -> None:
    response_id, whole = start(slow, ask(max_output_tokens=200))
    number = {"last but one": len(whole) - 2, "last": len(whole) - 1}.get(after, after)
    rest = resume(slow, response_id, after=None if number < 0 else number)
    assert data_of(rest) == data_of(whole[number + 1 :])


@pytest.mark.parametrize("beyond", [1, 9999])
def test_a_number_past_the_last_event_of_a_complete_response_is_a_mistake(slow: Server, beyond: int) -> None:
    response_id, whole = start(slow, ask(max_output_tokens=3))
    last = whole[-1].number
    with slow.client() as http:
        reply = http.get(f"/v1/responses/{response_id}", params={"stream": "true", "starting_after": last + beyond})
        assert reply.status_code == 400, reply.text
        error = reply.json()["error"]
        assert (error["param"], error["code"]) == ("starting_after", "invalid_value")
        assert f"number {last}." in error["message"]


def test_a_number_that_a_response_turns_out_not_to_reach_ends_with_an_error(slow: Server) -> None:
    """While it runs no number is refused: a log that has lost its tail may have less than a reader has seen."""
    response_id, _ = start(slow, ask(background=True), num_events=3)
    with slow.client() as http:
        reply = http.get(f"/v1/responses/{response_id}", params={"stream": "true", "starting_after": 9999})
    assert reply.status_code == 200
    assert "stream_diverged" in reply.text


def test_the_official_client_resumes(slow: Server) -> None:
    with client(slow) as api:
        stream = api.responses.create(
            model="echo", input=INPUT, temperature=0, max_output_tokens=200, stream=True, background=True
        )
        first = [next(iter(stream)) for _ in range(10)]
        stream.close()
        response_id = first[0].response.id  # type: ignore[union-attr]
        rest = list(api.responses.retrieve(response_id, stream=True, starting_after=first[-1].sequence_number))
        with api.responses.stream(response_id=response_id) as replayed:
            final = list(replayed)[-1]
    assert [event.sequence_number for event in first + rest] == list(range(len(first + rest)))
    assert rest[-1].type == "response.incomplete" == final.type


def test_a_stream_goes_on_over_a_killed_server(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.01)
    done_id, done = start(server, ask(max_output_tokens=40))
    response_id, before = start(server, ask(temperature=1, seed=3, background=True), num_events=25)
    server.kill()

    server = fresh.start(engine_echo_step_s=0.001)
    rest = resume(server, response_id, after=before[-1].number)
    assert [event.number for event in before + rest] == list(range(len(before + rest)))
    assert data_of(before + rest) == data_of(resume(server, response_id))
    assert data_of(done) == data_of(resume(server, done_id))
    undisturbed = start(server, ask(temperature=1, seed=3))[1]
    assert text_of(before + rest) == text_of(undisturbed)
    with client(server) as api:
        went_on = api.responses.create(
            model="echo", input="and then?", previous_response_id=done_id, temperature=0, max_output_tokens=400
        )
    assert went_on.output_text.startswith(f"user: {INPUT}\nassistant: {text_of(done)}")


@pytest.mark.parametrize("wrong", ["-1", "x", "1.5", "9" * 400])
def test_the_number_a_client_sends_must_be_one(slow: Server, wrong: str) -> None:
    response_id, _ = start(slow, ask(max_output_tokens=3))
    with slow.client() as http:
        reply = http.get(f"/v1/responses/{response_id}", params={"stream": "true", "starting_after": wrong})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "starting_after")
