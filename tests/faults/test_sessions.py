"""Conversations over several servers while the services fail: no turn is told less than was said."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.fleet import Fleet, Process
from tests.journeys.events import resume, start
from tests.journeys.server import wait_until
from tests.services.postgres import PostgresServer
from tests.services.redis import RedisServer
from tests.services.require import require

pytestmark = pytest.mark.services


@pytest.fixture
def redis_victim(victims: Path) -> Iterator[RedisServer]:
    require("redis-server")
    server = RedisServer(victims / "redis")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def postgres_victim(victims: Path) -> Iterator[PostgresServer]:
    require("postgres", "initdb")
    server = PostgresServer(victims / "postgres")
    server.start()
    yield server
    server.kill()


def ask(server: Process, text: str, **where: Any) -> dict[str, Any]:
    with server.client() as http:
        body = {"model": "echo", "temperature": 0, "input": text, **where}
        reply = http.post("/v1/responses", json=body)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def text_of(response: dict[str, Any]) -> str:
    return str(response["output"][0]["content"][0]["text"])


def flush(server: RedisServer) -> None:
    with server.admin() as admin:
        pipe = admin.pipeline(transaction=True)  # nobody writes between the loss and the look
        pipe.flushall()
        pipe.dbsize()
        assert pipe.execute()[1] == 0


def test_a_conversation_goes_on_at_any_server_after_redis_was_flushed(
    fleet: Callable[..., Fleet], redis_victim: RedisServer
) -> None:
    servers = fleet(own={"live_port": redis_victim.port}, engine_echo_step_s=0.0).gateways
    with servers[0].client() as http:
        talk = http.post("/v1/conversations", json={}).json()["id"]
    told, previous = "", ""
    for number in range(4):
        answer = ask(servers[number % 2], f"q{number}", conversation=talk, max_output_tokens=30)
        chained = ask(
            servers[(number + 1) % 2],
            f"q{number}",
            max_output_tokens=30,
            **({"previous_response_id": previous} if previous else {}),
        )
        told += f"user: q{number}\n"
        assert text_of(answer) == text_of(chained) == f"{told}assistant:"[:30]
        told += f"assistant: {text_of(answer)}\n"
        previous = chained["id"]
        flush(redis_victim)
    with servers[1].client() as http:
        items = http.get(f"/v1/conversations/{talk}/items", params={"limit": 100}).json()["data"]
    assert len(items) == 8


def test_a_running_turn_is_waited_for_although_redis_was_flushed_under_it(
    fleet: Callable[..., Fleet], redis_victim: RedisServer
) -> None:
    servers = fleet(own={"live_port": redis_victim.port}).gateways
    with servers[0].client() as http:
        talk = http.post("/v1/conversations", json={}).json()["id"]
    body = {"model": "echo", "temperature": 0, "input": "on", "conversation": talk, "background": True}
    response_id, got = start(servers[0], {**body, "ignore_eos": True, "max_output_tokens": 150}, num_events=20)
    flush(redis_victim)
    after = ask(servers[1], "and then?", conversation=talk, max_output_tokens=400)
    whole = resume(servers[1], response_id)
    assert whole[-1].last
    assert [event.data for event in whole[: len(got)]] == [event.data for event in got]
    said = whole[-1].body["response"]["output"][0]["content"][0]["text"]
    assert text_of(after).startswith(f"user: on\nassistant: {said}\nuser: and then?")


def test_a_conversation_goes_on_while_postgres_is_away_and_is_whole_afterwards(
    fleet: Callable[..., Fleet], postgres_victim: PostgresServer
) -> None:
    url = postgres_victim.database_url("postgres")
    [server] = fleet(num_gateways=1, own={"store_url": url}, engine_echo_step_s=0.0).gateways
    with server.client() as http:
        talk = http.post("/v1/conversations", json={}).json()["id"]
    first = ask(server, "one", conversation=talk)
    postgres_victim.kill()
    second = ask(server, "two", conversation=talk)
    assert text_of(second) == f"user: one\nassistant: {text_of(first)}\nuser: two\nassistant:"
    with server.client() as http:
        assert http.get(f"/v1/responses/{second['id']}").json() == second
        missing = http.get("/v1/responses/resp_unknown")
        assert (missing.status_code, missing.json()["error"]["code"]) == (503, "history_unavailable")
    postgres_victim.start()
    with server.client() as http:
        wait_until(lambda: http.get("/v1/responses/resp_unknown").status_code == 404, "the store is back")
    third = ask(server, "three", conversation=talk)
    assert text_of(third).startswith(f"user: one\nassistant: {text_of(first)}\nuser: two\n")
