"""A batch over a fleet of which every process and every service is killed once: every line once, and billed once."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import APIConnectionError, APIStatusError, OpenAI

from tests import long
from tests.fleet.fleet import ECHO, Fleet
from tests.fleet.member import Member
from tests.journeys.server import wait_until
from tests.journeys.test_batches import ENDED, chat_line, content, submit
from tests.services import rabbitmq
from tests.services.postgres import PostgresServer
from tests.services.rabbitmq import RabbitServer
from tests.services.redis import RedisServer
from tests.services.require import require

pytestmark = pytest.mark.services

LINES_IN_FLIGHT = 16
SETTINGS: dict[str, object] = {
    "batches_lease_s": 1.0,
    "batches_poll_s": 0.1,
    "batches_lines_in_flight": LINES_IN_FLIGHT,
    "engine_echo_step_s": 0.01,
    "engine_max_model_len": 256,
    "control_lease_s": 2.0,
    "lifecycle_start_wait_s": 120.0,
}
BAD_EVERY = 50
"""Every so many lines one is longer than the model's context, and belongs into the error file."""
PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Of one fleet, to be killed."""

    queue: RabbitServer
    live: RedisServer
    store: PostgresServer


@pytest.fixture
def services() -> Iterator[Services]:
    require("redis-server", "rabbitmq-server", "postgres", "nginx")
    # Not below pytest's own folder, which the next run of pytest shuts to the users that servers run as.
    with tempfile.TemporaryDirectory(prefix="axon-batch-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        live, store = RedisServer(folder / "redis"), PostgresServer(folder / "postgres")
        for server in (live, store):
            stack.callback(server.kill)
            server.start()
        yield Services(queue=rabbitmq.started_victim(), live=live, store=store)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_line_is_answered_once_though_everything_is_killed_once(
    fresh: Callable[..., Fleet], services: Services
) -> None:
    num_lines = 5000 if long.whole() else 500
    lines = [line_of(number) for number in range(num_lines)]
    urls = {"queue": services.queue.url, "live": services.live.url, "store": services.store.create_database()}
    fleet = fresh(**ECHO, **SETTINGS, **urls).start(gateways=2, workers=2, controls=1)
    with OpenAI(base_url=f"{fleet.url}/v1", api_key=fleet.key, max_retries=8) as client:
        watched = Watched(client, submit(client, lines))
        kills = each_once(fleet, services)
        for number, kill in enumerate(kills, 1):
            enough = number * num_lines // (len(kills) + 2)
            wait_until(lambda: watched.num_done() >= enough, f"{enough} lines are done", PATIENCE_S)  # noqa: B023
            assert watched.status not in ENDED, f"the batch was over before kill number {number}"
            kill()
        wait_until(lambda: watched.look() in ENDED, "the batch ends", PATIENCE_S)
        batch = client.batches.retrieve(watched.batch_id)
        output, errors = content(client, batch.output_file_id), content(client, batch.error_file_id)
    assert batch.status == "completed"
    found = [line["custom_id"] for line in (*output, *errors)]
    assert sorted(found) == sorted(line["custom_id"] for line in lines)
    assert [line["custom_id"] for line in errors] == [f"line-{number}" for number in range(0, num_lines, BAD_EVERY)]
    assert {line["response"]["body"]["error"]["code"] for line in errors} == {"context_length_exceeded"}
    for line in output:
        said = line["response"]["body"]["choices"][0]["message"]["content"]
        assert line["custom_id"].replace("line-", "word") in said
    turn_ids = {line["response"]["body"]["id"] for line in output}
    assert len(turn_ids) == len(output), "two lines share an answer"
    assert_billed_once(fleet, services.store, output)


def line_of(number: int) -> dict[str, Any]:
    if number % BAD_EVERY:
        return chat_line(number)
    return chat_line(number, messages=[{"role": "user", "content": f"word{number} " * 256}])


class Watched:
    """A batch as a client sees it that asks again when it gets no answer."""

    def __init__(self, client: OpenAI, batch_id: str) -> None:
        self._client, self.batch_id = client, batch_id
        self.status = ""
        self._num_done = 0

    def num_done(self) -> int:
        self.look()
        return self._num_done

    def look(self) -> str:
        """Its status, as it was last told."""
        with contextlib.suppress(APIConnectionError, APIStatusError):  # whoever would answer has just been killed
            batch = self._client.batches.retrieve(self.batch_id)
            self.status, counts = batch.status, batch.request_counts
            self._num_done = counts.completed + counts.failed if counts else 0
        return self.status


def each_once(fleet: Fleet, services: Services) -> list[Callable[[], None]]:
    """Kills each member and each service, and starts it again."""
    return [
        *(partial(restarted, member) for member in (*fleet.workers, *fleet.gateways, *fleet.controls)),
        partial(service_restarted, services.live),
        partial(service_restarted, services.queue),
        partial(service_restarted, services.store),
    ]


def restarted(member: Member) -> None:
    member.kill()
    member.start()


def service_restarted(service: RedisServer | RabbitServer | PostgresServer) -> None:
    if isinstance(service, RabbitServer):
        service.sync()
    service.kill()
    service.start()


def assert_billed_once(fleet: Fleet, store: PostgresServer, output: list[dict[str, Any]]) -> None:
    """The tenant's usage is that of the answers it got. A line that the server could not run at first is asked anew,
    which may count its prompt again, and never an answer."""
    used = [line["response"]["body"]["usage"] for line in output]
    prompts, answers = (sum(each[name] for each in used) for name in ("prompt_tokens", "completion_tokens"))

    def billed(name: str) -> int:
        with fleet.client() as http:
            days = http.get("/v1/usage").raise_for_status().json()["data"]
        return sum(day[name] for day in days)

    wait_until(lambda: billed("output_tokens") >= answers, "every answer is billed", 60)
    assert billed("output_tokens") == answers, other_turns(fleet, store, output)
    again = billed("prompt_tokens") - prompts
    under_way = LINES_IN_FLIGHT * max(each["prompt_tokens"] for each in used)
    assert 0 <= again <= under_way, f"{again} tokens of prompts were counted again"


def other_turns(fleet: Fleet, store: PostgresServer, output: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """Turns that answered no line, as the store has them."""
    database = str(fleet.store).rpartition("/")[2]
    rows = store.execute("SELECT id, state, code, output_tokens, opened_at, ended_at FROM turns", database)
    answered = {line["response"]["body"]["id"] for line in output}
    return [row for row in rows if row[0] not in answered]
