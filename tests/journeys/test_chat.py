"""A client program's first minutes: the official OpenAI client, unmodified."""

from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server
from tests.journeys.sse import pieces, text_of

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def client(server: Server, **arguments: object) -> OpenAI:
    return OpenAI(
        **{"base_url": f"{server.url}/v1", "api_key": server.key, "max_retries": 0, **arguments}  # type: ignore[arg-type]
    )


def test_the_official_client_streams_a_chat(echo: Server) -> None:
    with client(echo) as api:
        whole = api.chat.completions.create(model="echo", messages=QUESTION, temperature=0)  # type: ignore[arg-type]
        stream = api.chat.completions.create(
            model="echo", messages=QUESTION, temperature=0, stream=True, stream_options={"include_usage": True}
        )  # type: ignore[call-overload]
        events = list(stream)
    assert "What is the capital of France?" in (whole.choices[0].message.content or "")
    assert "".join(e.choices[0].delta.content or "" for e in events if e.choices) == whole.choices[0].message.content
    assert events[0].choices[0].delta.role == "assistant"
    assert len({event.id for event in events}) == 1
    assert events[-2].choices[0].finish_reason == "stop"
    assert events[-1].choices == []
    assert events[-1].usage.total_tokens == whole.usage.total_tokens  # type: ignore[union-attr]


def test_completions_go_on_with_a_text(echo: Server) -> None:
    with client(echo) as api:
        whole = api.completions.create(model="echo", prompt="to be or not to be", max_tokens=5, temperature=0)
        stream = list(
            api.completions.create(model="echo", prompt="to be or not to be", max_tokens=5, temperature=0, stream=True)
        )
    assert (whole.choices[0].text, whole.choices[0].finish_reason) == ("to be", "length")
    assert "".join(event.choices[0].text for event in stream) == "to be"


def test_a_stop_string_ends_the_answer_before_it(echo: Server) -> None:
    with client(echo) as api:
        answer = api.completions.create(
            model="echo", prompt="one two three", max_tokens=50, stop=[" thr"], temperature=0
        )
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("one two", "stop")


def test_a_seed_gives_the_same_answer_again(echo: Server) -> None:
    with client(echo) as api:
        first, again, other = (
            api.completions.create(model="echo", prompt="a random walk", max_tokens=40, seed=seed, temperature=1)
            .choices[0]
            .text
            for seed in (7, 7, 8)
        )
    assert first == again
    assert first != other


def test_models_are_listed_and_found(echo: Server) -> None:
    with client(echo) as api:
        assert [model.id for model in api.models.list()] == ["echo"]
        assert api.models.retrieve("echo").id == "echo"


def test_errors_arrive_as_the_clients_own_types(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.05, admission_concurrent=2, engine_max_model_len=2000)
    with pytest.raises(openai.AuthenticationError) as wrong_key, client(server, api_key="axk_wrong") as api:
        api.models.list()
    assert wrong_key.value.code == "invalid_api_key"
    with client(server) as api:
        with pytest.raises(openai.NotFoundError) as unknown_model:
            api.chat.completions.create(model="gpt-9", messages=QUESTION)  # type: ignore[arg-type]
        assert unknown_model.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError) as too_long:
            api.completions.create(model="echo", prompt="long " * 1000)
        assert too_long.value.code == "context_length_exceeded"
        assert "maximum context length is 2000 tokens" in too_long.value.message
        streams = [
            api.completions.create(
                model="echo", prompt="slowly", max_tokens=60, stream=True, extra_body={"ignore_eos": True}
            )
            for _ in range(2)
        ]
        with pytest.raises(openai.RateLimitError) as full:
            api.completions.create(model="echo", prompt="one more")
        assert int(full.value.response.headers["retry-after-ms"]) > 0
        for stream in streams:
            stream.close()


def test_frames_are_bare_data_lines_with_their_seq(echo: Server) -> None:
    body = {"model": "echo", "messages": QUESTION, "stream": True, "temperature": 0}
    with echo.client() as http, http.stream("POST", "/v1/chat/completions", json=body) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["x-axon-stream"].startswith("chatcmpl-")
        assert reply.headers["x-request-id"]
        got = list(pieces(reply.iter_lines()))
    assert [piece.seq for piece in got] == sorted(piece.seq for piece in got)
    assert "capital of France" in text_of(got)


def test_several_choices_come_in_one_answer_and_in_one_stream(echo: Server) -> None:
    asked: Any = {"model": "echo", "prompt": "a random walk", "max_tokens": 20, "seed": 7, "temperature": 1}
    with client(echo) as api:
        alone = api.completions.create(**asked)
        whole = api.completions.create(**asked, n=3)
        events = list(api.completions.create(**asked, n=3, stream=True))
    texts = [choice.text for choice in whole.choices]
    assert [choice.index for choice in whole.choices] == [0, 1, 2]
    assert texts[0] == alone.choices[0].text
    assert len(set(texts)) == 3
    assert whole.usage is not None
    assert whole.usage.completion_tokens <= 60
    streamed = dict.fromkeys(range(3), "")
    for event in events:
        streamed[event.choices[0].index] += event.choices[0].text
    assert list(streamed.values()) == texts
    assert sorted(event.choices[0].index for event in events if event.choices[0].finish_reason) == [0, 1, 2]


def test_log_probabilities_come_with_chats_and_completions(echo: Server) -> None:
    with client(echo) as api:
        asked: Any = {"model": "echo", "messages": QUESTION, "max_tokens": 4, "temperature": 0}
        chat = api.chat.completions.create(**asked, logprobs=True, top_logprobs=1)
        text = api.completions.create(model="echo", prompt="abc", max_tokens=3, temperature=0, logprobs=1)
    content = chat.choices[0].logprobs.content
    assert [entry.logprob for entry in content] == [0.0] * 4
    assert bytes(content[0].bytes).decode() == content[0].token == content[0].top_logprobs[0].token
    assert text.choices[0].logprobs is not None
    assert text.choices[0].logprobs.tokens == ["a", "b", "c"]
    assert text.choices[0].logprobs.text_offset == [0, 1, 2]


def test_a_prompt_is_echoed_before_the_answer(echo: Server) -> None:
    with client(echo) as api:
        asked: Any = {"model": "echo", "prompt": "ping", "max_tokens": 4, "temperature": 0, "echo": True}
        assert api.completions.create(**asked).choices[0].text == "pingping"
        assert "".join(event.choices[0].text for event in api.completions.create(**asked, stream=True)) == "pingping"


def test_a_prompt_sent_again_is_found_in_the_cache(echo: Server) -> None:
    prompt = "the same words again and again, long enough to fill a few blocks of the cache " * 3
    with client(echo) as api:
        first, again = (
            api.completions.create(model="echo", prompt=prompt, max_tokens=2, temperature=0).usage for _ in range(2)
        )
    assert first is not None
    assert first.prompt_tokens_details is not None
    assert again is not None
    assert again.prompt_tokens_details is not None
    assert first.prompt_tokens_details.cached_tokens == 0
    assert again.prompt_tokens - 32 <= (again.prompt_tokens_details.cached_tokens or 0) < again.prompt_tokens


def test_a_tier_is_asked_for_and_told_and_another_word_refused(echo: Server) -> None:
    with client(echo) as api:
        for asked, given in (("priority", "priority"), ("flex", "flex"), ("auto", "default"), (None, "default")):
            options: dict[str, Any] = {"service_tier": asked} if asked else {}
            chat = api.chat.completions.create(
                model="echo", messages=[{"role": "user", "content": "hi"}], max_tokens=2, **options
            )
            response = api.responses.create(model="echo", input="hi", max_output_tokens=2, **options)
            completion = api.completions.create(
                model="echo", prompt="hi", max_tokens=2, extra_body=options, stream=True
            )
            told = {chat.service_tier, response.service_tier, *(frame.service_tier for frame in completion)}  # type: ignore[attr-defined]
            assert told == {given}
        with pytest.raises(openai.BadRequestError) as refusal:
            api.responses.create(model="echo", input="hi", service_tier="scale")
        assert refusal.value.param == "service_tier"


STORED: Any = {"model": "echo", "messages": QUESTION, "temperature": 0, "store": True}


def test_a_stored_chat_is_read_again_until_it_is_erased(echo: Server) -> None:
    with client(echo) as api:
        made = api.chat.completions.create(**STORED)
        assert api.chat.completions.retrieve(made.id) == made
        erased = api.chat.completions.delete(made.id)
        assert (erased.id, erased.object, erased.deleted) == (made.id, "chat.completion.deleted", True)
        for ask in (api.chat.completions.retrieve, api.chat.completions.delete):
            with pytest.raises(openai.NotFoundError) as unknown:
                ask(made.id)
            assert unknown.value.code == "chat_completion_not_found"
    with echo.client() as http:
        assert http.get(f"/v1/streams/{made.id}").status_code == 410


def test_what_is_no_stored_chat_is_not_found_as_one(echo: Server) -> None:
    with client(echo) as api:
        ids = [
            api.chat.completions.create(**{**STORED, "store": False}).id,
            api.completions.create(model="echo", prompt="x", max_tokens=2, extra_body={"store": True}).id,
            api.responses.create(model="echo", input="x").id,
            "chatcmpl-nothing",
        ]
        for each in ids:
            for ask in (api.chat.completions.retrieve, api.chat.completions.delete):
                with pytest.raises(openai.NotFoundError):
                    ask(each)


def test_a_stored_chat_erased_while_it_runs_ends_and_does_not_come_back_after_a_restart(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    with client(server) as api:
        done = api.chat.completions.create(**STORED)
        stream = api.chat.completions.create(**STORED, stream=True, extra_body={"ignore_eos": True})
        running = next(iter(stream)).id
        with pytest.raises(openai.NotFoundError):
            api.chat.completions.retrieve(running)  # there is no answer yet
        for each in (done.id, running):
            assert api.chat.completions.delete(each).deleted
        stream.close()
    server.kill()
    server = fresh.start()
    with client(server) as api:
        for each in (done.id, running):
            with pytest.raises(openai.NotFoundError):
                api.chat.completions.retrieve(each)
    with server.client() as http:
        assert [http.get(f"/v1/streams/{each}").status_code for each in (done.id, running)] == [410, 410]


def test_a_repeated_chat_whose_answer_was_erased_is_told_so(echo: Server) -> None:
    with client(echo) as api:
        headers = {"Idempotency-Key": "erased-chat"}
        made = api.chat.completions.create(**STORED, extra_headers=headers)
        api.chat.completions.delete(made.id)
        with pytest.raises(openai.APIStatusError) as gone:
            api.chat.completions.create(**STORED, extra_headers=headers)
    assert gone.value.status_code == 410
