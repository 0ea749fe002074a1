"""The official client in all its ways of asking: synchronous, asynchronous, raw, streaming, retrying."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.journeys.server import Server, running

MESSAGES: Any = [{"role": "user", "content": "What is the capital of France?"}]
CHAT: Any = {"model": "echo", "messages": MESSAGES, "temperature": 0}


def client(server: Server, **arguments: Any) -> OpenAI:
    return OpenAI(**{"base_url": f"{server.url}/v1", "api_key": server.key, "max_retries": 0, **arguments})


async def test_an_asynchronous_client_asks_and_streams_at_once(echo: Server) -> None:
    async with AsyncOpenAI(base_url=f"{echo.url}/v1", api_key=echo.key) as api:
        whole, stream = await asyncio.gather(
            api.chat.completions.create(**CHAT), api.chat.completions.create(**CHAT, stream=True)
        )
        said = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        response = await api.responses.create(model="echo", input="Hello")
        async with api.responses.stream(model="echo", input="Hello") as events:
            streamed = await events.get_final_response()
    assert said == whole.choices[0].message.content
    assert streamed.output_text == response.output_text


def test_a_raw_answer_has_the_headers_that_clients_read(echo: Server) -> None:
    with client(echo, default_headers={"x-request-id": "mine-1"}) as api:
        raw = api.chat.completions.with_raw_response.create(**CHAT)
    assert raw.headers["x-request-id"] == "mine-1"
    assert int(raw.headers["openai-processing-ms"]) >= 0
    assert raw.headers["openai-version"] == "2020-10-01"
    assert raw.headers["x-axon-stream"] == raw.parse().id
    assert raw.parse()._request_id == "mine-1"
    limit = int(raw.headers["x-ratelimit-limit-requests"])
    assert limit >= 600
    assert 0 <= int(raw.headers["x-ratelimit-remaining-requests"]) < limit
    assert re.fullmatch(r"(\d+m)?[\d.]+m?s", raw.headers["x-ratelimit-reset-requests"])


def test_a_streaming_answer_is_read_line_by_line(echo: Server) -> None:
    with (
        client(echo) as api,
        api.chat.completions.with_streaming_response.create(**CHAT, stream=True) as reply,
    ):
        lines = [line for line in reply.iter_lines() if line]
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert json.loads(lines[0][6:])["object"] == "chat.completion.chunk"


def test_the_chat_stream_helper_is_satisfied(echo: Server) -> None:
    with client(echo) as api:
        whole = api.chat.completions.create(**CHAT)
        with api.chat.completions.stream(**CHAT, stream_options={"include_usage": True}) as events:
            for _ in events:
                pass
            final = events.get_final_completion()
    assert final.choices[0].message.content == whole.choices[0].message.content
    assert final.choices[0].finish_reason == "stop"
    assert final.usage is not None
    assert whole.usage is not None
    assert final.usage.completion_tokens == whole.usage.completion_tokens


@pytest.mark.parametrize(
    ("changes", "kind", "code"),
    [
        ({"model": "nothing"}, openai.NotFoundError, "model_not_found"),
        ({"temperature": 9}, openai.BadRequestError, "invalid_value"),
        ({"messages": [{"role": "user", "content": "x" * 50_000}]}, openai.BadRequestError, "context_length_exceeded"),
        ({"modalities": ["text", "audio"]}, openai.BadRequestError, "unsupported_parameter"),
    ],
)
def test_errors_have_the_clients_types_and_codes(
    echo: Server, changes: dict[str, Any], kind: type[openai.APIStatusError], code: str
) -> None:
    with client(echo) as api, pytest.raises(kind) as refused:
        api.chat.completions.create(**{**CHAT, **changes})
    assert refused.value.code == code
    assert refused.value.response.headers["x-should-retry"] == "false"


def test_the_client_waits_as_long_as_it_is_told_and_tries_again(tmp_path: Path) -> None:
    settings = {"engine_kind": "echo", "admission_requests_per_minute": 60}
    with running(tmp_path / "data", **settings) as server:
        with client(server) as hasty:
            with pytest.raises(openai.RateLimitError) as full:
                [hasty.completions.create(model="echo", prompt="x", max_tokens=1) for _ in range(200)]
            assert 0 < int(full.value.response.headers["retry-after-ms"]) <= 2000
            assert full.value.response.headers["x-should-retry"] == "true"
            assert full.value.response.headers["x-ratelimit-remaining-requests"] == "0"
        with client(server, max_retries=5) as patient:
            answers = [patient.completions.create(model="echo", prompt="x", max_tokens=1) for _ in range(3)]
        assert [answer.choices[0].text for answer in answers] == ["x"] * 3
        assert server.metric("axon_requests_total") > 0


def test_what_would_be_refused_again_is_not_sent_again(tmp_path: Path) -> None:
    with running(tmp_path / "data", engine_kind="echo") as server:
        with client(server, max_retries=5) as api, pytest.raises(openai.BadRequestError):
            api.chat.completions.create(**{**CHAT, "temperature": 9})
        assert server.metric("axon_requests_total") == 1


async def test_a_list_of_prompts_is_answered_in_its_order(echo: Server) -> None:
    prompts = ["one", "two", "three"]
    asked: Any = {"model": "echo", "prompt": prompts, "temperature": 0, "max_tokens": 10}
    async with AsyncOpenAI(base_url=f"{echo.url}/v1", api_key=echo.key) as api:
        whole = await api.completions.create(**asked)
        texts = dict.fromkeys(range(3), "")
        async for event in await api.completions.create(**asked, stream=True):
            texts[event.choices[0].index] += event.choices[0].text
    assert [choice.text for choice in whole.choices] == list(texts.values()) == prompts
