"""Stored chats as the official client lists them: page by page, with the messages that each was asked with."""

from typing import Any

import openai
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.test_responses import client


def test_stored_chats_are_listed_with_their_messages_until_they_are_erased(fresh: Fresh) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    with client(fresh.start()) as api:
        ask = {"model": "echo", "max_tokens": 3, "temperature": 0}
        made = [api.chat.completions.create(**ask, messages=asked, store=True) for _ in range(5)]
        api.chat.completions.create(**ask, messages=asked)  # is not stored
        ids = [each.id for each in made]
        assert [each.id for each in api.chat.completions.list(limit=2)] == ids  # over three pages
        assert [each.id for each in api.chat.completions.list(limit=2, order="desc")] == ids[::-1]
        assert api.chat.completions.list(model="echo", limit=1).data[0].choices == made[0].choices
        assert api.chat.completions.list(model="other").data == []
        for wrong in ({"limit": 0}, {"order": "up"}, {"after": "chatcmpl-x"}, {"metadata": {"a": "b"}}):
            with pytest.raises(openai.BadRequestError):
                api.chat.completions.list(**wrong)
        told = list(api.chat.completions.messages.list(ids[0], limit=3))
        assert [each.role for each in told] == ["system", "user", "assistant", "tool"]
        assert [each.content for each in told] == ["Be brief.", "ab", None, "done"]
        assert [part.text for part in told[1].content_parts] == ["a", "b"]
        assert told[2].tool_calls[0].function.name == "f"
        api.chat.completions.delete(ids[2])
        assert [each.id for each in api.chat.completions.list()] == [*ids[:2], *ids[3:]]
        with pytest.raises(openai.NotFoundError):
            api.chat.completions.messages.list(ids[2])
