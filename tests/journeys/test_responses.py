"""The Responses API as the official client uses it: kept histories, the background, streams, and what is refused."""

import json
import sqlite3
from typing import Any

import httpx
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


def test_a_conversation_is_kept_under_its_name(echo: Server) -> None:
    with client(echo) as api:
        kept = api.conversations.create(
            items=[{"type": "message", "role": "user", "content": "before"}], metadata={"topic": "x"}
        )
        first = api.responses.create(**GREEDY, input="one", conversation=kept.id)
        assert first.conversation is not None
        assert first.conversation.id == kept.id
        second = api.responses.create(**GREEDY, input="two", conversation=kept.id)
        assert second.output_text == f"user: before\nuser: one\nassistant: {first.output_text}\nuser: two\nassistant:"
        items = list(api.conversations.items.list(kept.id, order="asc", limit=2))
    assert [item.role for item in items] == ["user", "user", "assistant", "user", "assistant"]


def test_what_is_erased_is_unknown(fresh: Fresh) -> None:
    server = fresh.start()
    with client(server) as api:
        made = api.responses.create(**GREEDY, input="secret words")
        api.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            api.responses.retrieve(made.id)
        with pytest.raises(openai.BadRequestError) as gone:
            api.responses.create(**GREEDY, input="go on", previous_response_id=made.id)
        assert gone.value.code == "previous_response_not_found"


def test_a_chain_outlives_its_first_response(fresh: Fresh) -> None:
    server = fresh.start()
    with client(server) as api:
        first = api.responses.create(**GREEDY, input="one")
        second = api.responses.create(**GREEDY, input="two", previous_response_id=first.id)
        api.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError):
            api.responses.retrieve(first.id)
        assert api.responses.retrieve(second.id) == second
        third = api.responses.create(**GREEDY, input="three", previous_response_id=second.id)
    assert third.output_text == f"user: two\nassistant: {second.output_text}\nuser: three\nassistant:"


def test_a_response_is_no_conversation(echo: Server) -> None:
    with client(echo) as api:
        first = api.responses.create(**GREEDY, input="one")
        api.responses.create(**GREEDY, input="two", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError) as refused:
            api.responses.create(**GREEDY, input="three", conversation=first.id)
        assert refused.value.code == "conversation_not_found"
        with pytest.raises(openai.NotFoundError):
            api.conversations.items.list(first.id)
        with pytest.raises(openai.NotFoundError):
            api.conversations.items.create(first.id, items=[{"role": "user", "content": "x"}])


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


def test_one_turn_at_a_time_in_a_conversation(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.01, sessions_busy_wait_s=0.5)
    with client(server) as api:
        talk = api.conversations.create()
        long = {**GREEDY, "input": "on", "conversation": talk.id, "extra_body": {"ignore_eos": True}}
        running = api.responses.create(**long, max_output_tokens=3000, background=True)
        for header in ({"x-axon-when-busy": "refuse"}, {}):
            with pytest.raises(openai.ConflictError) as busy:
                api.responses.create(**GREEDY, input="two", conversation=talk.id, extra_headers=header)
            assert busy.value.code == "conversation_locked"
            assert busy.value.response.headers["x-should-retry"] == "true"
        api.responses.cancel(running.id)
        short = api.responses.create(**long, max_output_tokens=20, background=True)
        waited = api.responses.create(**GREEDY, input="two", conversation=talk.id)
        said = api.responses.retrieve(short.id).output_text
    assert waited.output_text == f"user: on\nassistant: {said}\nuser: two\nassistant:"


def test_the_client_retries_a_busy_conversation_by_itself(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02, sessions_busy_wait_s=0)
    with client(server, max_retries=5) as api:
        talk = api.conversations.create()
        api.responses.create(
            **GREEDY,
            input="on",
            conversation=talk.id,
            background=True,
            max_output_tokens=60,
            extra_body={"ignore_eos": True},
        )
        second = api.responses.create(**GREEDY, input="two", conversation=talk.id)
    assert second.output_text.startswith("user: on\nassistant: ")


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


def test_what_is_not_stored_is_nowhere_once_it_was_read(fresh: Fresh) -> None:
    server = fresh.start(sessions_reader_grace_s=1.0)
    body = {**GREEDY, "input": "a canary", "store": False}
    response_id, got = start(server, body)
    assert "a canary" in got[-1].data
    with client(server) as api, server.client() as http:
        with pytest.raises(openai.NotFoundError):
            api.responses.retrieve(response_id)
        with pytest.raises(openai.BadRequestError) as unknown:
            api.responses.create(**GREEDY, input="go on", previous_response_id=response_id)
        assert unknown.value.code == "previous_response_not_found"
        path = f"/v1/responses/{response_id}?stream=true"
        wait_until(lambda: http.get(path).status_code == 404, "its stream is forgotten")
    database = server.data_dir / "axon.db"
    if database.exists():
        with sqlite3.connect(database) as connection:
            rows = connection.execute("SELECT * FROM turns").fetchall()
        connection.close()
        assert len(rows) == 1
        assert "canary" not in repr(rows)


@pytest.mark.everywhere
def test_what_was_erased_does_not_come_back_after_a_restart(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    with client(server) as api:
        talk = api.conversations.create(items=[{"role": "user", "content": "a canary"}])
        first = api.responses.create(**GREEDY, input="one", conversation=talk.id)
        running = api.responses.create(
            **GREEDY, input="two", conversation=talk.id, background=True, extra_body={"ignore_eos": True}
        )
        assert api.conversations.delete(talk.id).deleted
    server.kill()
    server = fresh.start()
    with client(server) as api:
        for response_id in (first.id, running.id):
            with pytest.raises(openai.NotFoundError):
                api.responses.retrieve(response_id)
        with pytest.raises(openai.NotFoundError):
            api.conversations.retrieve(talk.id)
        with pytest.raises(openai.NotFoundError):
            api.responses.create(**GREEDY, input="three", conversation=talk.id)


def test_conversations_and_their_items(echo: Server) -> None:
    with client(echo) as api:
        talk = api.conversations.create(metadata={"topic": "x"})
        assert api.conversations.retrieve(talk.id) == talk
        assert api.conversations.update(talk.id, metadata={"topic": "y"}).metadata == {"topic": "y"}
        added = api.conversations.items.create(
            talk.id,
            items=[{"type": "message", "role": "user", "content": str(number)} for number in range(5)],
        )
        newest = api.conversations.items.list(talk.id, limit=2)
        assert [item.id for item in newest.data] == [added.data[4].id, added.data[3].id]
        assert newest.has_more
        oldest = api.conversations.items.list(talk.id, limit=100, order="asc", after=added.data[1].id)
        assert [item.id for item in oldest.data] == [item.id for item in added.data[2:]]
        assert not oldest.has_more
        found = api.conversations.items.retrieve(added.data[0].id, conversation_id=talk.id)
        assert found.content[0].text == "0"
        assert api.conversations.items.delete(added.data[0].id, conversation_id=talk.id).id == talk.id
        with pytest.raises(openai.NotFoundError):
            api.conversations.items.retrieve(added.data[0].id, conversation_id=talk.id)
        assert len(list(api.conversations.items.list(talk.id))) == 4


def test_others_ids_are_answered_exactly_like_unknown_ones(fresh: Fresh) -> None:
    server = fresh.start()
    with client(server) as api:
        talk = api.conversations.create(items=[{"role": "user", "content": "mine"}])
        made = api.responses.create(**GREEDY, input="mine", conversation=talk.id)
        item = next(iter(api.conversations.items.list(talk.id))).id
    stranger = {"Authorization": f"Bearer {_key(server, 'other')}"}
    calls = [
        *[("GET", path) for path in ("responses/R", "responses/R?stream=true", "responses/R/input_items")],
        *[("DELETE", "responses/R"), ("POST", "responses/R/cancel"), ("GET", "conversations/C")],
        *[("GET", "conversations/C/items"), ("GET", "conversations/C/items/I"), ("DELETE", "conversations/C/items/I")],
        *[("POST", "conversations/C"), ("POST", "conversations/C/items"), ("DELETE", "conversations/C")],
    ]
    with server.client() as http:
        for method, path in calls:
            body = {"metadata": {}, "items": [{"role": "user", "content": "x"}]} if method == "POST" else None
            told = [_asked(http, method, path, names, stranger, body) for names in ((made.id, talk.id, item), UNKNOWN)]
            assert told[0] == told[1], (method, path)
            assert told[0][0] == 404, (method, path, told[0])
        for field in ("previous_response_id", "conversation"):
            own, unknown = (made.id, UNKNOWN[0]) if field == "previous_response_id" else (talk.id, UNKNOWN[1])
            told = []
            for name in (own, unknown):
                reply = http.post("/v1/responses", json={**GREEDY, "input": "x", field: name}, headers=stranger)
                told.append((reply.status_code, reply.text.replace(name, "ID")))
            assert told[0] == told[1]
            assert told[0][0] in (400, 404)


UNKNOWN = ("resp_unknown", "conv_unknown", "msg_unknown")


def _asked(
    http: httpx.Client,
    method: str,
    path: str,
    names: tuple[str, str, str],
    headers: dict[str, str],
    body: dict[str, Any] | None,
) -> tuple[int, str]:
    for letter, name in zip("RCI", names, strict=True):
        path = path.replace(f"/{letter}", f"/{name}")
    reply = http.request(method, f"/v1/{path}", headers=headers, json=body)
    text = reply.text
    for letter, name in zip("RCI", names, strict=True):
        text = text.replace(name, letter)
    return reply.status_code, text


def _key(server: Server, tenant: str) -> str:
    made = server.axon("keys", "create", "--tenant", tenant, "--json")
    return str(json.loads(made.stdout)["key"])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({"input": None}, "input"),
    "empty input": ({"input": []}, "input"),
    "input a number": ({"input": 5}, "input"),
    "a role that does not exist": ({"input": [{"role": "wizard", "content": "x"}]}, "input.0.role"),
    "no role": ({"input": [{"content": "x"}]}, "input.0.role"),
    "no content": ({"input": [{"role": "user"}]}, "input.0.content"),
    "an image": ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.0.content"),
    "a file": ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input.0.content"),
    "a result of no call": ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input"),
    "a reference": ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0"),
    "both kinds of history": ({"previous_response_id": "resp_1", "conversation": "conv_1"}, "previous_response_id"),
    "tools": ({"tools": [{"type": "web_search"}]}, "tools"),
    "a tool that must be called": ({"tool_choice": "required"}, "tool_choice"),
    "a bad JSON schema": (
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "wizard"}}}},
        "text.format.schema",
    ),
    "too many likely tokens": ({"top_logprobs": 21}, "top_logprobs"),
    "an effort that does not exist": ({"reasoning": {"effort": "endless"}}, "reasoning.effort"),
    "a stored prompt": ({"prompt": {"id": "p"}}, "prompt"),
    "a chat's messages": ({"messages": [{"role": "user", "content": "x"}]}, "messages"),
    "two answers": ({"n": 2}, "n"),
    "a stop string": ({"stop": "c"}, "stop"),
    "unstored in the background": ({"store": False, "background": True}, "store"),
    "unstored in a conversation": ({"store": False, "conversation": "conv_1"}, "store"),
    "seventeen pieces of metadata": ({"metadata": {str(number): "x" for number in range(17)}}, "metadata"),
    "metadata a number": ({"metadata": {"a": 1}}, "metadata"),
    "metadata too long": ({"metadata": {"a": "x" * 513}}, "metadata"),
    "truncation by chance": ({"truncation": "maybe"}, "truncation"),
    "no tokens": ({"max_output_tokens": 0}, "max_output_tokens"),
    "too hot": ({"temperature": 3}, "temperature"),
    "NUL": ({"input": "a\0b"}, ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_by_its_name(echo: Server, name: str) -> None:
    fields, param = REFUSED[name]
    with echo.client() as http:
        reply = http.post("/v1/responses", json={**GREEDY, "input": "hello", **fields})
        assert reply.status_code == 400, reply.text
        error = reply.json()["error"]
        assert (error["param"] or "").startswith(param), error
        assert reply.headers["x-should-retry"] == "false"


def test_a_header_that_means_nothing_is_refused(echo: Server) -> None:
    with echo.client() as http:
        for field in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
            headers = {"x-axon-when-busy": "panic"}
            reply = http.post("/v1/responses", json={**GREEDY, "input": "x", **field}, headers=headers)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, "x-axon-when-busy")


@pytest.mark.parametrize(
    ("query", "param"),
    [("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"), ("order=up", "order"), ("after=no", "after")],
)
def test_a_bad_cursor_is_refused(echo: Server, query: str, param: str) -> None:
    with client(echo) as api, echo.client() as http:
        talk = api.conversations.create()
        reply = http.get(f"/v1/conversations/{talk.id}/items?{query}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


def test_a_repeated_request_gets_the_first_ones_answer(echo: Server) -> None:
    with client(echo) as api:
        talk = api.conversations.create()
        headers = {"Idempotency-Key": f"once-{talk.id}"}
        first, again = (
            api.responses.create(**GREEDY, input="one", conversation=talk.id, extra_headers=headers) for _ in range(2)
        )
        assert first == again
        assert len(list(api.conversations.items.list(talk.id))) == 2


def test_a_repeated_request_whose_answer_was_erased_is_told_so(echo: Server) -> None:
    with client(echo) as api:
        headers = {"Idempotency-Key": "erased-since"}
        made = api.responses.create(**GREEDY, input="one", extra_headers=headers)
        api.responses.delete(made.id)
        with pytest.raises(openai.APIStatusError) as gone:
            api.responses.create(**GREEDY, input="one", extra_headers=headers)
    assert gone.value.status_code == 410


def test_a_response_is_not_continued_as_a_chat_stream(echo: Server) -> None:
    with client(echo) as api, echo.client() as http:
        made = api.responses.create(**GREEDY, input="one")
        reply = http.get(f"/v1/streams/{made.id}")
        assert reply.status_code == 400
        assert f"/v1/responses/{made.id}" in reply.json()["error"]["message"]
        chat = http.post(
            "/v1/chat/completions", json={**GREEDY, "messages": [{"role": "user", "content": "x"}], "store": True}
        ).json()
        assert http.get(f"/v1/responses/{chat['id']}").status_code == 404
        go_on = {**GREEDY, "input": "x", "previous_response_id": chat["id"]}
        assert http.post("/v1/responses", json=go_on).json()["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("conversations", {"items": "x"}, "items"),
        ("conversations", {"items": [{"role": "user", "content": [{"type": "input_image"}]}]}, "items.0.content"),
        ("conversations", {"metadata": {"a": ["b"]}}, "metadata.a"),
        ("conversations/conv_1", {}, "metadata"),
        ("conversations/conv_1/items", {"items": []}, "items"),
        ("responses/input_tokens", {"model": "echo"}, "input"),
        ("responses/input_tokens", {"input": "x"}, "model"),
    ],
)
def test_other_bodies_are_checked_as_well(echo: Server, path: str, body: dict[str, Any], param: str) -> None:
    with echo.client() as http:
        reply = http.post(f"/v1/{path}", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text


def test_an_empty_body_makes_an_empty_conversation(echo: Server) -> None:
    with echo.client() as http:
        made = http.post("/v1/conversations")
        assert made.status_code == 200
        listed = http.get(f"/v1/conversations/{made.json()['id']}/items").json()
    assert (listed["data"], listed["has_more"], listed["first_id"]) == ([], False, None)


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
