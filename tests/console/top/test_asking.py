"""How a server is asked for a look, and what a person is told when it gives none."""

import httpx
import msgspec
import pytest

from axon.console.server.server import Server
from axon.console.top.asking import PATH, History, ask
from axon.domain.overview import Overview
from axon.errors import AxonError, Forbidden, NotFound, Unauthenticated, Unavailable
from tests.console.top.looks import overview, worker

URL = "http://127.0.0.1:9"


async def asked(answer: httpx.Response | Exception) -> Overview:
    def respond(request: httpx.Request) -> httpx.Response:
        assert request.url.path == PATH
        if isinstance(answer, Exception):
            raise answer
        return answer

    with Server(URL, "key") as server:
        async with httpx.AsyncClient(transport=httpx.MockTransport(respond), base_url=URL) as client:
            return await ask(server, client)


def refusal(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": "No.", "code": code}})


async def test_a_look_is_read_with_fields_of_a_later_release_left_out() -> None:
    look = overview(worker("wörker"))
    body = msgspec.json.decode(msgspec.json.encode(look)) | {"added_later": {"by": "somebody"}}
    assert await asked(httpx.Response(200, json=body)) == look


@pytest.mark.parametrize(
    ("answer", "kind", "word"),
    [
        (refusal(401, "invalid_api_key"), Unauthenticated, "does not know this key"),
        (refusal(403, "insufficient_permissions"), Forbidden, "--scope admin"),
        (refusal(404, "unknown_url"), NotFound, "an earlier release"),
        (httpx.Response(502, text="<html>"), AxonError, "Is it Axon"),
        (httpx.Response(200, text="<html>"), AxonError, "Is it Axon"),
        (httpx.Response(200, json={"object": "list"}), AxonError, "no overview"),
        (httpx.Response(200, content=b" " * (17 * 1024 * 1024)), AxonError, "too large"),
        (httpx.ConnectError("refused"), Unavailable, "No server answers"),
        (httpx.ReadError("reset"), Unavailable, "broke"),
        (httpx.ReadTimeout("slow"), Unavailable, "has not answered within 5 s"),
    ],
)
async def test_what_is_no_look_is_an_error_in_words(
    answer: httpx.Response | Exception, kind: type[AxonError], word: str
) -> None:
    with pytest.raises(kind) as failed:
        await asked(answer)
    assert word in failed.value.message


def test_rates_are_over_the_window_once_there_are_looks_enough() -> None:
    history = History()
    found = [
        history.add(overview(worker(at=float(at), answer=at * at), at=float(at)), window_s=3.0).fleet.answer_per_s
        for at in range(6)
    ]
    assert found == [None, 1.0, 2.0, 3.0, 5.0, 7.0]
