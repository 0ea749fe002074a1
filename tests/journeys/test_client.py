"""The client that reconnects by itself, over a network that cuts most connections."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai import APIConnectionError, AsyncOpenAI, InternalServerError, OpenAI

from axon.client import StreamLost, aresumed, resumed
from tests import long
from tests.journeys.conftest import Fresh
from tests.journeys.cutting import cutting
from tests.journeys.server import Server

WORDS = "the quick brown fox jumps over the lazy dog, größer, 更大 "


ASKED: dict[str, Any] = {"model": "echo", "input": "hello", "temperature": 0, "max_output_tokens": 20}


def asked(number: int, route: str) -> dict[str, Any]:
    """A request of its own kind: short or long, one choice or two, by the number."""
    common = {"model": "echo", "max_tokens": 20 + 37 * number % 200, "seed": number, "n": 1 + number % 2}
    sampling = {"temperature": 1.0, "extra_body": {"ignore_eos": True}}
    text = f"{number}: {WORDS}"
    if route == "chat":
        return {**common, **sampling, "messages": [{"role": "user", "content": text}]}
    if route == "response":
        return {"model": "echo", "max_output_tokens": common["max_tokens"], "temperature": 0, "input": text * 4}
    return {**common, **sampling, "prompt": text}


def create(api: OpenAI, route: str, request: dict[str, Any], **more: Any) -> Any:
    match route:
        case "chat":
            return api.chat.completions.create(**request, **more)
        case "response":
            return api.responses.create(**request, **more)
    return api.completions.create(**request, **more)


def texts_of(events: Iterable[Any]) -> dict[int, str]:
    """What each choice says; a response has one."""
    texts: dict[int, str] = defaultdict(str)
    for event in events:
        if event.object == "text_completion":
            texts[event.choices[0].index] += event.choices[0].text
        elif event.object == "chat.completion.chunk":
            texts[event.choices[0].index] += event.choices[0].delta.content or ""
    return dict(texts)


def told(events: Iterable[Any], route: str) -> dict[int, str]:
    if route != "response":
        return texts_of(events)
    seen = list(events)
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    return {0: "".join(event.delta for event in seen if event.type == "response.output_text.delta")}


def whole(api: OpenAI, request: dict[str, Any], route: str) -> dict[int, str]:
    answer = create(api, route, request)
    match route:
        case "chat":
            return {each.index: each.message.content or "" for each in answer.choices}
        case "response":
            return {0: answer.output_text}
    return {each.index: each.text for each in answer.choices}


def test_many_streams_over_a_network_that_cuts_say_what_was_said(slow: Server) -> None:
    num_streams = 200 if long.whole() else 24
    with (
        OpenAI(base_url=f"{slow.url}/v1", api_key=slow.key, max_retries=4) as straight,
        cutting(slow.url, seed=5) as network,
        OpenAI(base_url=f"{network.url}/v1", api_key=slow.key, max_retries=0) as broken,
    ):

        def one(number: int) -> tuple[dict[int, str], dict[int, str]]:
            route = ("chat", "completion", "response")[number % 3]
            request = asked(number, route)
            while True:
                try:
                    stream = create(broken, route, request, stream=True)
                    break
                except APIConnectionError:
                    continue  # cut before the headers: no stream to resume
                except InternalServerError as busy:
                    if busy.status_code != 503:  # the cores are: any client would ask again
                        raise
            return told(resumed(broken, stream), route), whole(straight, request, route)

        with ThreadPoolExecutor(16) as readers:
            answers = list(readers.map(one, range(num_streams)))
    assert network.num_cut > num_streams
    for streamed, said in answers:
        assert streamed == said


async def test_an_asynchronous_client_resumes_as_well(slow: Server) -> None:
    with cutting(slow.url, seed=6) as network:
        async with AsyncOpenAI(base_url=f"{network.url}/v1", api_key=slow.key, max_retries=4) as api:
            request = asked(190, "chat")
            streams: list[Any] = [await api.chat.completions.create(**request, stream=True) for _ in range(4)]

            async def read(stream: Any) -> dict[int, str]:
                return texts_of([chunk async for chunk in aresumed(api, stream)])

            answers = await asyncio.gather(*map(read, streams))
    assert answers[0]
    assert answers == [answers[0]] * 4


def test_a_stream_goes_on_over_a_killed_server(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02)
    with OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as api:
        request = asked(130, "chat")
        said = whole(api, request, "chat")
        stream: Any = api.chat.completions.create(**request, stream=True)
        chunks = []
        for chunk in resumed(api, stream):
            chunks.append(chunk)
            if len(chunks) == 20:
                server.kill()
                server.start_again()
    assert texts_of(chunks) == said


def test_a_server_that_stays_away_is_given_up_with_where_the_stream_stands(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.02)
    with OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as api:
        stream: Any = api.chat.completions.create(**asked(130, "chat"), stream=True)
        reading = resumed(api, stream, patience_s=0.5)
        first = next(reading)
        server.kill()
        with pytest.raises(StreamLost) as lost:
            list(reading)
    assert lost.value.stream_id == first.id
    assert lost.value.seq >= first.axon["seq"]


def test_connections_that_end_early_again_and_again_do_not_keep_the_stream_from_its_end(fresh: Fresh) -> None:
    """Each ends as if all had been said, without the mark that says so."""
    server = fresh.start(engine_echo_step_s=0.02)
    with (
        OpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as api,
        cutting(server.url, seed=1, most_bytes=600) as network,
        OpenAI(base_url=f"{network.url}/v1", api_key=server.key, max_retries=0) as broken,
    ):
        stream: Any = api.chat.completions.create(**asked(130, "chat"), stream=True)
        reading = resumed(broken, stream, patience_s=60)
        assert next(reading).id
        stream.close()
        assert list(reading)  # cut nearly every time before a token comes, it gets there all the same


def test_a_stream_that_was_picked_up_in_its_middle_is_resumed_from_there(echo: Server) -> None:
    with OpenAI(base_url=f"{echo.url}/v1", api_key=echo.key, max_retries=0) as api:
        response = api.responses.create(model="echo", input="over and out", temperature=0)
        events = list(api.responses.retrieve(response.id, stream=True))
        last: Any = api.responses.retrieve(response.id, stream=True, starting_after=events[-2].sequence_number)
        nothing: Any = api.responses.retrieve(response.id, stream=True, starting_after=events[-1].sequence_number)
        assert [event.sequence_number for event in resumed(api, last)] == [events[-1].sequence_number]
        assert next(resumed(api, nothing, patience_s=0), None) is None


def test_what_is_no_stream_of_its_own_is_refused_with_what_to_pass(echo: Server) -> None:
    with OpenAI(base_url=f"{echo.url}/v1", api_key=echo.key) as api, api.responses.stream(**ASKED) as helper:
        with pytest.raises(TypeError, match=r"ResponseStream cannot be resumed: pass what create\("):
            next(resumed(api, helper))  # type: ignore[arg-type]
        helper.until_done()
