"""Conversations, as the official client and other programs use them."""

import openai
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server
from tests.journeys.test_responses import GREEDY, client


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


def test_an_empty_body_makes_an_empty_conversation(echo: Server) -> None:
    with echo.client() as http:
        made = http.post("/v1/conversations")
        assert made.status_code == 200
        listed = http.get(f"/v1/conversations/{made.json()['id']}/items").json()
    assert (listed["data"], listed["has_more"], listed["first_id"]) == ([], False, None)


def test_a_response_begins_its_conversation(echo: Server) -> None:
    begins = {**GREEDY, "input": "one", "conversation": {"metadata": {"title": "begun at once"}}}
    with echo.client() as http:
        first = http.post("/v1/responses", json=begins, headers={"idempotency-key": "k1"}).raise_for_status().json()
        again = http.post("/v1/responses", json=begins, headers={"idempotency-key": "k1"}).raise_for_status().json()
        assert (again["id"], again["conversation"]) == (first["id"], first["conversation"])
        talk = first["conversation"]["id"]
        assert [each["id"] for each in http.get("/v1/conversations?title=begun at once").json()["data"]] == [talk]
        second = http.post("/v1/responses", json={**GREEDY, "input": "two", "conversation": talk}).json()
        assert second["output"][0]["content"][0]["text"].startswith("user: one\nassistant: ")
        other = (
            http.post("/v1/responses", json=begins).raise_for_status().json()
        )  # without a key it is another question
        assert other["conversation"]["id"] != talk
        told = http.get(f"/v1/conversations/{talk}/responses").json()["data"]
    assert [each["id"] for each in told] == [first["id"], second["id"]]


@pytest.mark.parametrize(
    ("more", "headers"),
    [
        ({"previous_response_id": "resp_1"}, {}),
        ({"store": False}, {}),
        ({"input": "long " * 20_000}, {}),
        ({"input": None}, {}),
        ({}, {"x-axon-branch-of": "conv_1"}),
        ({"conversation": {}}, {}),
    ],
)
def test_a_refused_response_begins_no_conversation(
    echo: Server, more: dict[str, object], headers: dict[str, str]
) -> None:
    body = {**GREEDY, "input": "one", "conversation": {"metadata": {"title": "refused"}}, **more}
    with echo.client() as http:
        assert http.post("/v1/responses", json=body, headers=headers).status_code == 400
        assert http.get("/v1/conversations", params={"title": "refused"}).json()["data"] == []
