"""The default model behind a server, which these journeys share: its engine takes seconds to start."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel, Field

from tests.journeys.server import Server
from tests.journeys.sse import text_of
from tests.journeys.test_chat import QUESTION
from tests.journeys.test_failover import kill_engine, read_killing
from tests.journeys.test_responses import client

pytestmark = pytest.mark.model

GREEDY: dict[str, Any] = {"model": "smollm2-135m-instruct", "temperature": 0}
PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):",
    "Once upon a time in a small village,",
    "1, 2, 3, 4,",
    "Water boils at",
    "The three laws of robotics are",
    "Der schnellste Weg nach Hause ist",
    "In the beginning",
]


def test_the_default_model_knows_the_capital_of_france(real: Server) -> None:
    with client(real) as api:
        answer = api.chat.completions.create(**GREEDY, messages=QUESTION)
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_kept_conversation_answers_as_the_same_messages_sent_whole(real: Server) -> None:
    asked = ["What is the capital of France?", "And of Italy?", "Which of the two is larger?"]
    messages: list[Any] = [{"role": "system", "content": "Answer in one sentence."}]
    with client(real) as api:
        talk = api.conversations.create()
        previous: str | None = None
        for text in asked:
            messages.append({"role": "user", "content": text})
            whole = api.chat.completions.create(**GREEDY, messages=messages, max_tokens=40)
            fields: dict[str, Any] = {**GREEDY, "input": text, "instructions": "Answer in one sentence."}
            kept = api.responses.create(**fields, conversation=talk.id, max_output_tokens=40)
            chained = api.responses.create(**fields, previous_response_id=previous, max_output_tokens=40)
            assert kept.output_text == chained.output_text == whole.choices[0].message.content
            assert kept.usage is not None
            assert whole.usage is not None
            assert kept.usage.input_tokens == whole.usage.prompt_tokens
            messages.append({"role": "assistant", "content": kept.output_text})
            previous = chained.id


def test_the_best_of_several_answers_is_returned_and_all_are_counted(real: Server) -> None:
    asked = {
        **GREEDY,
        "prompt": ["The sky is", "My dog"],
        "seed": 5,
        "temperature": 1,
        "max_tokens": 8,
        "logprobs": 0,
    }
    with client(real) as api:
        made = api.completions.create(**asked, n=4)
        best = api.completions.create(**asked, n=2, best_of=4)
        plain = api.completions.create(**{**asked, "logprobs": None}, best_of=4)

    def likelihood(choice: Any) -> float:
        logprobs: list[float] = choice.logprobs.token_logprobs
        return sum(logprobs) / len(logprobs)

    right = [
        choice.text
        for first in (0, 4)
        for choice in sorted(made.choices[first : first + 4], key=likelihood, reverse=True)[:2]
    ]
    assert [choice.text for choice in best.choices] == right
    assert [choice.index for choice in best.choices] == [0, 1, 2, 3]
    assert [(choice.text, choice.logprobs) for choice in plain.choices] == [(right[0], None), (right[2], None)]
    assert made.usage is not None
    assert {answer.usage.completion_tokens for answer in (made, best, plain) if answer.usage} == {
        made.usage.completion_tokens
    }


def test_an_echoed_text_is_as_likely_as_when_it_was_said(real: Server) -> None:
    asked = {**GREEDY, "logprobs": 3}
    prompt = list(range(1000, 1150))
    with client(real) as api:
        said = api.completions.create(**asked, prompt=prompt, max_tokens=12, extra_body={"ignore_eos": True}).choices[0]
        with real.client() as http:
            top = http.post(
                "/v1/completions", json={**asked, "prompt": prompt, "max_tokens": 12, "echo": True, "ignore_eos": True}
            )
    again = top.json()["choices"][0]
    assert said.logprobs is not None
    assert again["text"].endswith(said.text)
    assert again["logprobs"]["token_logprobs"][150:] == said.logprobs.token_logprobs
    assert again["logprobs"]["top_logprobs"][150:] == said.logprobs.top_logprobs
    assert again["logprobs"]["token_logprobs"][0] is None
    assert len(again["logprobs"]["tokens"]) == len(again["logprobs"]["text_offset"]) == 162
    with client(real) as api:  # now its words are the prompt, and were the likeliest
        text = "The capital of France is Paris. The capital of Italy is"
        whole = api.completions.create(**asked, prompt=text, max_tokens=4).choices[0]
        echoed = api.completions.create(**asked, prompt=text + whole.text, max_tokens=0, echo=True).choices[0]
    assert whole.logprobs is not None
    assert echoed.logprobs is not None
    assert echoed.text == text + whole.text
    assert echoed.logprobs.tokens is not None
    assert echoed.logprobs.tokens[-4:] == whole.logprobs.tokens
    assert echoed.logprobs.token_logprobs is not None
    assert echoed.logprobs.token_logprobs[-4:] == whole.logprobs.token_logprobs
    assert echoed.logprobs.top_logprobs is not None
    assert echoed.logprobs.top_logprobs[-4:] == whole.logprobs.top_logprobs


def test_eight_streams_at_once_say_what_each_says_alone(real: Server) -> None:
    def complete(prompt: str) -> str:
        body = {**GREEDY, "prompt": prompt, "max_tokens": 20}
        with real.client() as http:
            text: str = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
            return text

    alone = [complete(prompt) for prompt in PROMPTS]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(complete, PROMPTS))
    assert together == alone


def test_it_says_the_same_after_its_engine_was_killed(real: Server) -> None:
    body = {**GREEDY, "prompt": "Once upon a time", "max_tokens": 60}
    failovers = real.metric("axon_failovers_total")
    with real.client() as http:
        undisturbed = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
    got = read_killing(real, {**body, "stream": True}, at_tokens=(15,))
    assert text_of(got) == undisturbed
    assert real.metric("axon_failovers_total") == failovers + 1


class GetWeather(BaseModel):
    """The weather of a city."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


def test_required_named_and_strict_calls_follow_their_schemas(real: Server) -> None:
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    other: Any = {"type": "function", "function": {"name": "now", "strict": True, "parameters": {"type": "object"}}}
    asked: dict[str, Any] = {**GREEDY, "temperature": 1.0, "seed": 7, "messages": QUESTION, "max_tokens": 120}
    named = {"type": "function", "function": {"name": "get_weather"}}
    with client(real) as api:
        for choice, parallel in ((named, False), ("required", False), ("required", True)):
            made = api.chat.completions.parse(
                **asked, tools=[tool, other], tool_choice=choice, parallel_tool_calls=parallel
            ).choices[0]
            assert made.message.content is None
            calls: Any = made.message.tool_calls
            if not parallel:
                assert made.finish_reason == "tool_calls"
                assert len(calls) == 1
            for call in calls[: None if made.finish_reason == "tool_calls" else -1]:
                if call.function.name == "get_weather":
                    assert isinstance(call.function.parsed_arguments, GetWeather)
        flat: Any = [{"type": "function", **tool["function"]}]
        response = api.responses.create(
            model=GREEDY["model"], input="hi", tools=flat, tool_choice="required", parallel_tool_calls=False
        )
        [item] = response.output
        assert item.type == "function_call"
        GetWeather.model_validate_json(item.arguments)
        free = api.chat.completions.create(**asked, tools=[tool]).choices[0]
        assert free.message.content or free.message.tool_calls


def test_a_call_that_the_engine_died_in_is_the_call_of_an_undisturbed_run(real: Server) -> None:
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    asked = {
        **GREEDY,
        "messages": QUESTION,
        "tools": [tool],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "stream": True,
        "seed": 3,
        "temperature": 1.0,
    }
    with client(real) as api:
        whole = api.chat.completions.create(**{**asked, "stream": False}).choices[0].message.tool_calls
    frames: list[Any] = []
    with real.client() as http, http.stream("POST", "/v1/chat/completions", json=asked) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: {"):
                frames.append(json.loads(line.removeprefix("data: ")))
                if len(frames) == 3:
                    kill_engine(real)
    deltas = [call for frame in frames for each in frame["choices"] for call in each["delta"].get("tool_calls", ())]
    assert "".join(delta["function"]["arguments"] for delta in deltas) == whole[0].function.arguments


def test_both_ways_to_ask_for_a_prompts_log_probabilities_say_the_same(real: Server) -> None:
    body = {**GREEDY, "prompt": PROMPTS[:3], "max_tokens": 1, "echo": True, "logprobs": 2, "prompt_logprobs": 2}
    with real.client() as http:
        choices = http.post("/v1/completions", json=body).json()["choices"]
        alone = [
            http.post("/v1/completions", json={**body, "prompt": each}).json()["choices"][0] for each in PROMPTS[:3]
        ]
    for choice, one in zip(choices, alone, strict=True):
        assert choice["prompt_logprobs"] == one["prompt_logprobs"], "batched as alone"
        first, *rest = choice["prompt_logprobs"]
        echoed = choice["logprobs"]
        assert first is None
        for index, entries in enumerate(rest, start=1):
            own, *_ = entries.values()
            assert (own["decoded_token"], own["logprob"]) == (echoed["tokens"][index], echoed["token_logprobs"][index])
            by_rank = {entry["rank"]: entry for entry in entries.values()}
            assert {1, 2} <= by_rank.keys()
            assert by_rank[1]["logprob"] >= by_rank[2]["logprob"] >= by_rank[max(by_rank)]["logprob"]
            assert by_rank[1]["logprob"] == max(echoed["top_logprobs"][index].values())
