"""The Responses API as the official client uses it: kept histories, the background, streams, and what is refused."""

from typing import Any

import openai
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server
from tests.journeys.test_chat import client

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
    assert [item.role for item in items] == ["user", "user", "assistant", "user", "assistant"]  # type: ignore[union-attr]


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
