"""The Responses API as the official client uses it: kept histories, the background and streams."""

from typing import Any

import openai
import pytest

from tests.journeys import test_chat
from tests.journeys.conftest import Fresh
from tests.journeys.events import resume, start
from tests.journeys.server import Server, wait_until


def client(server: Server, **arguments: object) -> Any:
    """The official client. What it says of its types is not the matter here."""
    return test_chat.client(server, **arguments)


GREEDY: dict[str, Any] = {"model": "echo", "temperature": 0}


def test_a_response_is_an_answer_and_a_record_of_it(echo: Server) -> None:
    with client(echo) as api:
        made = api.responses.create(**GREEDY, input="hello there", instructions="Be brief.", metadata={"a": "b"})
        assert made.status == "completed"
        assert made.output_text == "system: Be brief.\nuser: hello there\nassistant:"
        assert made.usage is not None
        assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
        assert made.usage.input_tokens_details.cached_tokens >= 0
        assert api.responses.retrieve(made.id) == made
        assert (made.metadata, made.instructions) == ({"a": "b"}, "Be brief.")


def test_a_response_goes_on_from_the_one_before(echo: Server) -> None:
    with client(echo) as api:
        first = api.responses.create(**GREEDY, input="one")
        second = api.responses.create(**GREEDY, input="two", previous_response_id=first.id)
        third = api.responses.create(**GREEDY, input="three", previous_response_id=second.id)
        whole = api.chat.completions.create(
            **GREEDY,
            messages=[
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": first.output_text},
                {"role": "user", "content": "two"},
                {"role": "assistant", "content": second.output_text},
                {"role": "user", "content": "three"},
            ],
        )
    assert third.output_text == whole.choices[0].message.content
    assert third.previous_response_id == second.id
    assert third.usage.input_tokens_details.cached_tokens > 0  # the engine has seen what was said before


def test_the_clients_stream_helper_is_satisfied(echo: Server) -> None:
    with client(echo) as api:
        with api.responses.stream(**GREEDY, input="hello there") as stream:
            numbers = [event.sequence_number for event in stream]
            final = stream.get_final_response()
        assert numbers == list(range(len(numbers)))
        assert final.output_text == "user: hello there\nassistant:"
        assert api.responses.retrieve(final.id).output_text == final.output_text


def test_an_answer_that_was_cut_off_says_so(echo: Server) -> None:
    with client(echo) as api:
        made = api.responses.create(**GREEDY, input="hello there", max_output_tokens=5)
        events = list(api.responses.create(**GREEDY, input="hello there", max_output_tokens=5, stream=True))
    assert (made.status, made.output_text) == ("incomplete", "user:")
    assert made.incomplete_details is not None
    assert made.incomplete_details.reason == "max_output_tokens"
    assert events[0].type == "response.created"
    assert events[-1].type == "response.incomplete"


def test_input_may_be_text_messages_parts_or_earlier_output(echo: Server) -> None:
    with client(echo) as api:
        first = api.responses.create(**GREEDY, input=[{"role": "user", "content": "one"}])
        second = api.responses.create(
            **GREEDY,
            input=[
                {
                    "role": "developer",
                    "content": [{"type": "input_text", "text": "Be "}, {"type": "input_text", "text": "kind."}],
                },
                *[item.model_dump() for item in first.output],
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "two"}]},
            ],
        )
        items = list(api.responses.input_items.list(second.id, order="asc", limit=1))
    assert second.output_text == f"system: Be kind.\nassistant: {first.output_text}\nuser: two\nassistant:"
    assert [item.role for item in items] == ["developer", "assistant", "user"]
    assert [part.text for part in items[0].content] == ["Be ", "kind."]


def test_log_probabilities_are_told_when_they_are_asked_for(echo: Server) -> None:
    asked = {**GREEDY, "input": "one", "include": ["message.output_text.logprobs"], "top_logprobs": 2}
    with client(echo) as api:
        made = api.responses.create(**asked)
        events = list(api.responses.create(**asked, stream=True))
        assert api.responses.retrieve(made.id) == made
    told = made.output[0].content[0].logprobs
    deltas = [entry for each in events if each.type == "response.output_text.delta" for entry in each.logprobs]
    assert "".join(entry.token for entry in deltas) == made.output_text
    assert [entry.logprob for entry in told][: len(deltas)] == [entry.logprob for entry in deltas]
    assert made.top_logprobs == 2


def test_thinking_that_is_passed_back_is_not_told_again(echo: Server) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hmm"}]}
    with client(echo) as api:
        made = api.responses.create(**GREEDY, input=[thought, {"role": "user", "content": "one"}])
    assert made.output_text == "user: one\nassistant:"


def test_instructions_are_not_carried_over(echo: Server) -> None:
    with client(echo) as api:
        first = api.responses.create(**GREEDY, input="one", instructions="Be brief.")
        second = api.responses.create(**GREEDY, input="two", instructions="Be kind.", previous_response_id=first.id)
    assert second.output_text == f"system: Be kind.\nuser: one\nassistant: {first.output_text}\nuser: two\nassistant:"


def test_input_tokens_are_counted_as_they_will_be_billed(echo: Server) -> None:
    with client(echo) as api:
        first = api.responses.create(**GREEDY, input="one")
        counted = api.responses.input_tokens.count(model="echo", input="two", previous_response_id=first.id)
        second = api.responses.create(**GREEDY, input="two", previous_response_id=first.id)
    assert second.usage is not None
    assert (counted.input_tokens, counted.object) == (second.usage.input_tokens, "response.input_tokens")


def test_a_background_response_is_asked_for_later(slow: Server) -> None:
    with client(slow) as api:
        made = api.responses.create(**GREEDY, input="no hurry", background=True)
        assert made.status in ("queued", "in_progress")
        assert made.output == []
        wait_until(lambda: api.responses.retrieve(made.id).status == "completed", "it is answered")
        assert api.responses.retrieve(made.id).output_text == "user: no hurry\nassistant:"


def test_a_background_response_outlives_its_reader_and_can_be_cancelled(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02, sessions_reader_grace_s=0.3)
    body = {**GREEDY, "input": "on and on", "ignore_eos": True, "max_output_tokens": 7000, "background": True}
    response_id, got = start(server, body, num_events=8)
    with client(server) as api:
        wait_until(lambda: server.metric(r"axon_tokens_total") >= 0, "time passes")
        rest = resume(server, response_id, after=got[-1].number, num_events=60)  # well past the grace time
        assert rest[-1].number == got[-1].number + 60
        assert api.responses.retrieve(response_id).status == "in_progress"
        cancelled = api.responses.cancel(response_id)
        assert cancelled.status == "cancelled"
        assert api.responses.cancel(response_id) == cancelled
        wait_until(lambda: server.metric("axon_requests_running") == 0, "the engine is free again")
        whole = resume(server, response_id)
        assert whole[-1].body["type"] == "response.incomplete"
        assert whole[-1].body["response"]["status"] == "cancelled"
        with pytest.raises(openai.BadRequestError):
            api.responses.create(**GREEDY, input="go on", previous_response_id=response_id)


def test_what_outgrows_the_window_is_an_error_unless_it_may_be_cut(fresh: Fresh) -> None:
    server = fresh.start(engine_max_model_len=400)
    with client(server) as api:
        talk = api.conversations.create(
            items=[{"role": "user", "content": f"message {number} " + "x" * 40} for number in range(10)]
        )
        asked = {**GREEDY, "instructions": "Be brief.", "input": "the last", "conversation": talk.id}
        with pytest.raises(openai.BadRequestError) as too_long:
            api.responses.create(**asked)
        assert too_long.value.code == "context_length_exceeded"
        assert "This model's maximum context length is 400 tokens" in too_long.value.message
        cut = api.responses.create(**asked, truncation="auto", max_output_tokens=20)
        assert cut.truncation == "auto"
        assert cut.usage is not None
        assert 300 < cut.usage.input_tokens <= 380
        named = {"model": "echo", "instructions": "Be brief.", "input": "the last", "conversation": talk.id}
        assert 400 < api.responses.input_tokens.count(**named).input_tokens < 1000
        assert api.responses.input_tokens.count(**named, truncation="auto").input_tokens <= 400
        kept = api.responses.create(**{**asked, "input": "x" * 100}, truncation="auto")
        assert kept.output_text.startswith("system: Be brief.\nuser: message")
        with pytest.raises(openai.BadRequestError) as hopeless:
            api.responses.create(**{**asked, "input": "x" * 500}, truncation="auto")
        assert hopeless.value.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError) as too_much:
            api.responses.create(**GREEDY, input="x", max_output_tokens=500)
        assert (too_much.value.code, too_much.value.param) == ("context_length_exceeded", "max_output_tokens")


def test_a_repeated_request_gets_the_first_ones_answer(echo: Server) -> None:
    with client(echo) as api:
        talk = api.conversations.create()
        headers = {"Idempotency-Key": f"once-{talk.id}"}
        first, again = (
            api.responses.create(**GREEDY, input="one", conversation=talk.id, extra_headers=headers) for _ in range(2)
        )
        assert first == again
        assert len(list(api.conversations.items.list(talk.id))) == 2


def test_the_page_of_the_api_names_every_route(echo: Server) -> None:
    with echo.client() as http:
        paths = http.get("/openapi.json").json()["paths"]
    assert set(paths["/v1/responses/{response_id}"]) == {"get", "delete"}
    assert set(paths["/v1/conversations/{conversation_id}/items/{item_id}"]) == {"get", "delete"}
    named = {each["name"] for each in paths["/v1/responses/{response_id}"]["get"]["parameters"]}
    assert named == {"response_id", "stream", "starting_after"}
    body = paths["/v1/responses"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"input", "previous_response_id", "conversation", "truncation"} <= set(body["properties"])


@pytest.mark.everywhere
def test_a_cancel_that_was_answered_outlives_a_killed_server(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.03)
    with client(server) as api:
        response = api.responses.create(**GREEDY, input="x" * 80, background=True)
        wait_until(lambda: api.responses.retrieve(response.id).status == "in_progress", "it runs")
        assert api.responses.cancel(response.id).status == "cancelled"
        server.kill()
    again = fresh.start(engine_echo_step_s=0.03)
    with client(again) as api:
        assert api.responses.retrieve(response.id).status == "cancelled"


def test_counting_tokens_counts_as_a_request(fresh: Fresh) -> None:
    server = fresh.start(admission_requests_per_minute=5)
    with server.client() as http:
        codes = [
            http.post("/v1/responses/input_tokens", json={"model": "echo", "input": "x"}).status_code for _ in range(8)
        ]
    assert codes[0] == 200
    assert codes[-1] == 429
