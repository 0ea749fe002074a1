"""The official client against vLLM: what it asks of any engine is what it asks of this one."""

import asyncio
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.conformance import near_valid
from tests.conformance.test_fuzz import ask_almost
from tests.conformance.test_openai import (
    CHAT,
    test_a_raw_answer_has_the_headers_that_clients_read,
    test_a_streaming_answer_is_read_line_by_line,
    test_errors_have_the_clients_types_and_codes,
)
from tests.journeys.server import Server
from tests.journeys.test_chat import (
    test_a_seed_gives_the_same_answer_again,
    test_a_tier_is_asked_for_and_told_and_another_word_refused,
    test_models_are_listed_and_found,
    test_several_choices_come_in_one_answer_and_in_one_stream,
)
from tests.vllm_environment import vllm_python

__all__ = [
    "test_a_raw_answer_has_the_headers_that_clients_read",
    "test_a_seed_gives_the_same_answer_again",
    "test_a_streaming_answer_is_read_line_by_line",
    "test_a_tier_is_asked_for_and_told_and_another_word_refused",
    "test_errors_have_the_clients_types_and_codes",
    "test_models_are_listed_and_found",
    "test_several_choices_come_in_one_answer_and_in_one_stream",
]


async def test_an_asynchronous_client_asks_and_streams_at_once(echo: Server) -> None:
    asked: Any = {**CHAT, "max_tokens": 40}
    async with AsyncOpenAI(base_url=f"{echo.url}/v1", api_key=echo.key) as api:
        whole, stream = await asyncio.gather(
            api.chat.completions.create(**asked), api.chat.completions.create(**asked, stream=True)
        )
        said = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        response = await api.responses.create(model="echo", input="Hello", max_output_tokens=20)
    assert said == whole.choices[0].message.content
    assert response.usage is not None
    assert response.usage.output_tokens <= 20


@pytest.mark.vllm
def test_a_choice_holds_as_a_grammar(echo: Server) -> None:
    vllm_python()
    body = {"model": "echo", "prompt": "Say it: ", "max_tokens": 20, "structured_outputs": {"choice": ["yes", "no"]}}
    with echo.client() as http:
        answer = http.post("/v1/completions", json=body).json()["choices"][0]
    assert answer["text"] in ("yes", "no")
    assert answer["finish_reason"] == "stop"


@pytest.mark.vllm
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses"])
def test_no_request_that_is_almost_right_makes_the_server_fail(echo: Server, path: str) -> None:
    vllm_python()
    ask_almost(echo, path, near_valid.OPERATIONS[path])


def test_log_probabilities_and_usage_are_told(echo: Server) -> None:
    body = {"model": "echo", "prompt": "Once upon a time", "max_tokens": 6, "logprobs": 2, "echo": True}
    with echo.client() as http:
        answer = http.post("/v1/completions", json={**body, "ignore_eos": True}).json()
    told = answer["choices"][0]["logprobs"]
    assert len(told["tokens"]) == len("Once upon a time") + 6
    assert told["token_logprobs"][0] is None
    assert all(value <= 0 for value in told["token_logprobs"][1:])
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (16, 6)


def test_a_stop_string_ends_the_answer_before_it(echo: Server) -> None:
    body = {"model": "echo", "prompt": "Once upon a time", "max_tokens": 40, "temperature": 0, "ignore_eos": True}
    with echo.client() as http:
        whole = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
        stopped = http.post("/v1/completions", json={**body, "stop": whole[7:9]}).json()["choices"][0]
    assert stopped["text"] == whole[: whole.index(whole[7:9])]
    assert stopped["finish_reason"] == "stop"
