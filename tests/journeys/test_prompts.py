"""Several prompts in one request: one id, one stream, one bill, and each answered as if it were alone."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, wait_until
from tests.journeys.sse import Piece
from tests.journeys.test_chat import client
from tests.journeys.test_failover import kill_engine, read_killing
from tests.journeys.test_resume import read_on, read_some

PROMPTS = ["to be or not to be", "größer und 更大", "x"]
GREEDY: dict[str, Any] = {"model": "echo", "temperature": 0, "max_tokens": 12}


def by_choice(pieces: Iterable[Piece]) -> dict[int, str]:
    texts: dict[int, str] = {}
    for piece in pieces:
        for choice in piece.event["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
    return dict(sorted(texts.items()))


@pytest.mark.parametrize("prompts", [PROMPTS, [list(prompt.encode()) for prompt in PROMPTS]], ids=["texts", "ids"])
def test_each_prompt_gets_the_answer_it_gets_alone(echo: Server, prompts: list[Any]) -> None:
    with client(echo) as api:
        alone = [api.completions.create(**GREEDY, prompt=prompt, logprobs=1) for prompt in prompts]
        whole = api.completions.create(**GREEDY, prompt=prompts, logprobs=1)
        assert [choice.index for choice in whole.choices] == [0, 1, 2]
        for choice, one in zip(whole.choices, alone, strict=True):
            assert choice.model_copy(update={"index": 0}) == one.choices[0]
        assert whole.usage is not None
        for count in ("prompt_tokens", "completion_tokens", "total_tokens"):
            assert getattr(whole.usage, count) == sum(getattr(one.usage, count) for one in alone)
        events = list(
            api.completions.create(**GREEDY, prompt=prompts, stream=True, stream_options={"include_usage": True})
        )
    assert len({event.id for event in events}) == 1
    streamed = dict.fromkeys(range(3), "")
    for event in events:
        for choice in event.choices:
            streamed[choice.index] += choice.text
    assert list(streamed.values()) == [choice.text for choice in whole.choices]
    ends = {choice.index: choice.finish_reason for event in events for choice in event.choices if choice.finish_reason}
    assert ends == {choice.index: choice.finish_reason for choice in whole.choices}
    assert events[-1].usage is not None
    assert events[-1].usage.total_tokens == whole.usage.total_tokens


def test_each_prompt_gets_n_choices_that_stand_together(echo: Server) -> None:
    asked: dict[str, Any] = {**GREEDY, "temperature": 1, "seed": 7, "n": 2}
    with client(echo) as api:
        whole = api.completions.create(**asked, prompt=["aaaa", "bbbb", "cccc"])
        again = api.completions.create(**asked, prompt=["aaaa", "bbbb", "cccc"])
        stopped = api.completions.create(**GREEDY, prompt=["one. two", "three. four"], stop=". ", n=2)
        echoed = api.completions.create(**{**GREEDY, "max_tokens": 1}, prompt=["ab", "cd"], n=2, echo=True)
    assert [choice.index for choice in whole.choices] == [0, 1, 2, 3, 4, 5]
    assert ["".join(sorted(set(choice.text))) for choice in whole.choices] == ["a", "a", "b", "b", "c", "c"]
    assert again.choices == whole.choices
    assert [choice.text for choice in stopped.choices] == ["one", "one", "three", "three"]
    assert [choice.text for choice in echoed.choices] == ["aba", "aba", "cdc", "cdc"]


def test_a_stream_of_several_prompts_is_picked_up_where_it_broke(slow: Server) -> None:
    body = {**GREEDY, "prompt": PROMPTS, "max_tokens": 60, "ignore_eos": True, "stream": True}
    with slow.client() as http:
        whole = http.post("/v1/completions", json={**body, "stream": False}).json()["choices"]
    for num_pieces in (1, 2, 4, 50):
        stream_id, before = read_some(slow, body, num_pieces)
        rest = read_on(slow, stream_id, after=before[-1].seq)
        assert by_choice([*before, *rest]) == {choice["index"]: choice["text"] for choice in whole}


def test_a_stream_of_several_prompts_goes_on_after_the_engine_was_killed(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.005)
    body = {"model": "echo", "prompt": PROMPTS, "n": 2, "seed": 3, "max_tokens": 60, "ignore_eos": True, "stream": True}
    with server.client() as http:
        whole = http.post("/v1/completions", json={**body, "stream": False}).json()["choices"]
    got = read_killing(server, body, at_tokens=(2, 100))
    assert by_choice(got) == {choice["index"]: choice["text"] for choice in whole}
    assert server.metric("axon_failovers_total") == 2


def test_several_prompts_under_one_key_are_answered_and_billed_once(fresh: Fresh) -> None:
    server = fresh.start()
    headers = {"x-axon-ledger": "true", "Idempotency-Key": "several"}
    with server.client() as http:
        first, again = (
            http.post("/v1/completions", json={**GREEDY, "prompt": PROMPTS}, headers=headers).json() for _ in range(2)
        )
        assert first == again
        assert first["axon"]["ledger"]["billed_tokens"] == first["usage"]["total_tokens"]
        assert (
            first["axon"]["ledger"]["queued_tokens"]
            == first["usage"]["prompt_tokens"]
            == len("".join(PROMPTS).encode())
        )
        wait_until(lambda: http.get("/v1/usage").json()["data"], "the turn is in the store")
        [day] = http.get("/v1/usage").json()["data"]
        assert (day["turns"], day["total_tokens"]) == (1, first["usage"]["total_tokens"])


def test_more_choices_than_a_request_may_have_are_refused_by_name(echo: Server) -> None:
    with client(echo) as api:
        most = api.completions.create(**{**GREEDY, "max_tokens": 1}, prompt=["x"] * 64, n=2)
        assert len(most.choices) == 128
        with pytest.raises(openai.BadRequestError) as refused:
            api.completions.create(**GREEDY, prompt=["x"] * 65, n=2)
        assert (refused.value.param, "130 choices" in refused.value.message) == ("prompt", True)
        with pytest.raises(openai.BadRequestError) as long:
            api.completions.create(**GREEDY, prompt=["x", "y" * 10_000])
        assert long.value.code == "context_length_exceeded"


@pytest.mark.parametrize("more", [{"best_of": 2, "stream": True}, {"best_of": 1, "n": 2}, {"best_of": 129}])
def test_a_best_of_that_cannot_be_is_refused_by_name(echo: Server, more: dict[str, Any]) -> None:
    with client(echo) as api, pytest.raises(openai.BadRequestError) as refused:
        api.completions.create(**GREEDY, prompt="x", **more)
    assert (refused.value.param or "").startswith("best_of")


def test_an_answer_that_is_chosen_at_its_end_is_no_stream(echo: Server) -> None:
    with client(echo) as api, echo.client() as http:
        made = api.completions.create(**GREEDY, prompt="x", best_of=2)
        assert [choice.text for choice in made.choices] == ["x"]
        assert http.get(f"/v1/streams/{made.id}").status_code == 400


def test_an_echoed_prompt_has_its_log_probabilities(echo: Server) -> None:
    asked: dict[str, Any] = {"model": "echo", "temperature": 0, "echo": True, "logprobs": 1}
    with client(echo) as api:
        two = api.completions.create(**asked, prompt=["aß", "x"], max_tokens=1)
        alone = api.completions.create(**asked, prompt="aß", max_tokens=0)
        streamed = list(api.completions.create(**asked, prompt=["aß", "x"], max_tokens=0, stream=True))
    found = two.choices[0].logprobs
    assert found is not None
    assert (two.choices[0].text, two.choices[1].text) == ("aßa", "xx")
    assert (found.tokens, found.token_logprobs) == (["a", "�", "�", "a"], [None, 0.0, 0.0, 0.0])
    assert (found.text_offset, found.top_logprobs) == ([0, 1, 1, 2], [None, {"�": 0.0}, {"�": 0.0}, {"a": 0.0}])
    only = alone.choices[0].logprobs
    assert only is not None
    assert (alone.choices[0].text, alone.choices[0].finish_reason) == ("aß", "length")
    assert (only.tokens, only.token_logprobs) == (["a", "�", "�"], [None, 0.0, 0.0])
    told = {event.choices[0].index: event.choices[0] for event in streamed if event.choices[0].text}
    assert told[0].logprobs == only
    assert (told[0].text, told[1].text) == ("aß", "x")


def test_a_prompt_has_its_log_probabilities_in_vllms_shape(echo: Server) -> None:
    def entry(token: str) -> dict[str, Any]:
        return {"logprob": 0.0, "rank": 1, "decoded_token": token}

    asked: dict[str, Any] = {"model": "echo", "temperature": 0, "max_tokens": 2, "prompt_logprobs": 1}
    with echo.client() as http:
        two = http.post("/v1/completions", json={**asked, "prompt": ["ab", "x"], "n": 2}).json()
        both = http.post(
            "/v1/completions", json={**asked, "prompt": "ab", "echo": True, "logprobs": 0, "store": True}
        ).json()
        messages = [{"role": "user", "content": "hi"}]
        chat = http.post("/v1/chat/completions", json={**asked, "messages": messages, "store": True}).json()
        again = http.get(f"/v1/chat/completions/{chat['id']}").json()
        plain = http.post("/v1/chat/completions", json={**asked, "messages": messages, "prompt_logprobs": None}).json()
    ab = [None, {"98": entry("b")}]
    assert [choice["prompt_logprobs"] for choice in two["choices"]] == [ab, ab, [None], [None]]
    assert [choice["logprobs"] for choice in two["choices"]] == [None] * 4
    [choice] = both["choices"]
    assert (choice["prompt_logprobs"], choice["logprobs"]["tokens"]) == (ab, ["a", "b", "a", "b"])
    assert choice["logprobs"]["top_logprobs"] == [None, {}, {}, {}], "an echo shows as many as it asked for"
    first, *rest = chat["prompt_logprobs"]
    assert first is None
    assert len(rest) == chat["usage"]["prompt_tokens"] - 1
    assert all(list(map(len, each.values())) == [3] for each in rest)
    assert again["prompt_logprobs"] == chat["prompt_logprobs"]
    assert "prompt_logprobs" not in plain


@pytest.mark.parametrize("body", [{"prompt": "x"}, {"messages": [{"role": "user", "content": "x"}]}], ids=list)
@pytest.mark.parametrize(
    "changes", [{"prompt_logprobs": 0, "stream": True}, {"prompt_logprobs": -1}, {"prompt_logprobs": 21}]
)
def test_a_prompts_log_probabilities_that_cannot_be_are_refused_by_name(
    echo: Server, body: dict[str, Any], changes: dict[str, Any]
) -> None:
    path = "/v1/completions" if "prompt" in body else "/v1/chat/completions"
    with echo.client() as http:
        refused = http.post(path, json={"model": "echo", **body, **changes})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "prompt_logprobs")


def test_what_cannot_be_said_of_an_echoed_prompt_is_refused_by_name(echo: Server) -> None:
    with client(echo) as api:
        for changes, param in (
            ({"max_tokens": 0}, "max_tokens"),
            ({"echo": True, "logprobs": 20, "n": 128}, "logprobs"),
            ({"extra_body": {"prompt_logprobs": 20}, "n": 128}, "prompt_logprobs"),
        ):
            with pytest.raises(openai.BadRequestError) as refused:
                api.completions.create(**{**GREEDY, "prompt": "x" * 200, **changes})
            assert refused.value.param == param


def test_a_prompts_log_probabilities_are_whole_after_the_engine_was_killed(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02)
    body = {"model": "echo", "prompt": ["ab" * 300, "c"], "max_tokens": 30, "ignore_eos": True, "temperature": 0}
    got = read_killing(server, {**body, "echo": True, "logprobs": 0, "stream": True}, at_tokens=(1, 20))
    told = [piece.event["choices"][0] for piece in got if piece.event["choices"][0]["logprobs"]]
    tokens = {
        index: [token for each in told if each["index"] == index for token in each["logprobs"]["tokens"]]
        for index in (0, 1)
    }
    assert {index: "".join(each) for index, each in tokens.items()} == by_choice(got)
    assert by_choice(got) == {0: "ab" * 315, 1: "c" * 31}


def test_the_log_probabilities_of_a_prompt_are_the_same_after_the_engine_was_killed_while_it_computed_them(
    fresh: Fresh,
) -> None:
    server = fresh.start(engine_echo_step_s=0.05)
    body = {"model": "echo", "prompt": "ab" * 1000, "max_tokens": 3, "temperature": 0, "prompt_logprobs": 1}
    with server.client() as http, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(http.post, "/v1/completions", json=body)
        wait_until(lambda: server.metric("axon_step_seconds_count") > 5, "the prompt is being computed")
        kill_engine(server)
        answer = asked.result().json()
        undisturbed = http.post("/v1/completions", json=body).json()
    assert server.metric("axon_failovers_total") == 1
    assert answer["choices"] == undisturbed["choices"]
    assert len(answer["choices"][0]["prompt_logprobs"]) == 2000
