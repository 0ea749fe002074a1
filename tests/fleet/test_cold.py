"""A cold model in a fleet: what is asked of it is accepted, told how it waits, and answered when control has started a
worker."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

import httpx
import pytest

from tests.fleet import launched
from tests.fleet.fleet import Fleet
from tests.fleet.versions import MODEL, Registry, register_echo, sent
from tests.journeys.server import wait_until
from tests.services.nursery import COLD_STARTS

NUM_TENANTS, NUM_ASKS = 4, 100
COLD = {"min_replicas": 0, "idle_s": 1.0}
DEADLINE_S = 60.0
REFUSED = ("overloaded", "backlog_tokens", "slo_unreachable", "pool_unavailable", "no_worker", "no_version")
"""What a model that cannot answer says; other errors of the server are of services that are slow on busy cores."""


@dataclass
class Asked:
    """One request, sent again with its key until it is answered, and what its client was told on the way."""

    number: int
    key: str
    """The API key of its tenant."""
    headers: list[httpx.Headers] = field(default_factory=list)
    """Headers of each answer that began."""
    notices: list[dict[str, object]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    text: str = ""
    num_tries: int = 0

    @property
    def prompt(self) -> str:
        return f"cold start, request {self.number}"

    @property
    def streams(self) -> bool:
        return self.number % 3 == 0

    @property
    def is_response(self) -> bool:
        """Whether it is a response; the others are completions. Half of the streams are."""
        return self.number % 6 == 0

    async def ask(self, http: httpx.AsyncClient, urls: list[str]) -> None:
        """Asks one gateway after the other, beginning with its own, until it has an answer."""
        for attempt in count(self.number):
            self.num_tries += 1
            with suppress(httpx.TransportError):  # its gateway was lost: the next one has its turn
                await (self._stream if self.streams else self._whole)(http, urls[attempt % len(urls)])
            if self.text:
                return
            await asyncio.sleep(0.1)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Idempotency-Key": f"cold-{self.number}"}

    async def _whole(self, http: httpx.AsyncClient, url: str) -> None:
        body = {"model": MODEL, "prompt": self.prompt, "max_tokens": 64}
        answer = await http.post(f"{url}/v1/completions", json=body, headers=self._headers)
        if self._began(answer):
            self.text = answer.json()["choices"][0]["text"]

    async def _stream(self, http: httpx.AsyncClient, url: str) -> None:
        body: dict[str, object] = {"model": MODEL, "stream": True}
        if self.is_response:
            path, more = "/v1/responses", {"input": self.prompt, "max_output_tokens": 64}
        else:
            path, more = "/v1/completions", {"prompt": self.prompt, "max_tokens": 64}
        body |= more
        async with http.stream("POST", url + path, json=body, headers=self._headers) as answer:
            if answer.status_code != 200:
                await answer.aread()
            if not self._began(answer):
                return
            text = ""
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    text += self._heard(json.loads(line.removeprefix("data: ")))
        self.text = text

    def _heard(self, event: dict[str, object]) -> str:
        """The piece of text in an event; a notice of how the turn waits is kept."""
        more = event.get("axon")
        if isinstance(more, dict) and "queue" in more:
            self.notices.append(more["queue"])
        if event.get("type") == "response.output_text.delta":
            return str(event["delta"])
        choices = event.get("choices")
        return str(choices[0]["text"]) if isinstance(choices, list) and choices else ""

    def _began(self, answer: httpx.Response) -> bool:
        """Whether it is answered. On busy cores a service may not confirm in time: such a request is sent again, as
        OpenAI's clients do."""
        if answer.status_code == 200:
            self.headers.append(answer.headers)
            return True
        if answer.status_code < 500 or answer.json()["error"]["code"] in REFUSED:
            self.refusals.append(answer.text)
            self.text = "refused"
        return False


def keys_of(fleet: Fleet) -> list[str]:
    """A key of each of several tenants."""
    keys = []
    for number in range(NUM_TENANTS):
        fleet.axon("tenants", "create", f"tenant-{number}")
        keys.append(json.loads(fleet.axon("keys", "create", "--tenant", f"tenant-{number}", "--json"))["key"])
    return keys


@pytest.mark.services
def test_a_hundred_requests_for_a_cold_model_survive_its_start_and_none_is_refused(
    fresh: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COLD_STARTS, "1")  # a forked worker is there before most have asked
    fleet = fresh(gateway_silence_s=1.0, control_launcher="process", control_look_s=0.2, worker_announce_s=0.2)
    fleet.start(gateways=2, workers=0, controls=1, meanwhile=lambda fleet: register_echo(fleet, MODEL, **COLD))
    fleet.add("control")
    with Registry(fleet) as registry:
        keys, urls = keys_of(fleet), [gateway.url for gateway in fleet.gateways]
        with fleet.client(urls[1]) as http:
            body = {"model": MODEL, "prompt": "the first one", "max_tokens": 64}
            sent(http.post("/v1/completions", json=body))  # its start is measured
            wait_until(lambda: http.get(f"/v1/models/{MODEL}").json().get("state") == "cold", "it is cold again")
        wait_until(lambda: not launched.processes(fleet.data_dir), "its worker has ended")
        registry.change(idle_s=600)
        asks = [Asked(number, keys[number % NUM_TENANTS]) for number in range(NUM_ASKS)]
        asyncio.run(journey(fleet, asks, urls))
        for each in asks:
            assert not each.refusals, each
            assert each.text.removeprefix("user: ").startswith(each.prompt), each
            assert_told(each)
        with fleet.client(urls[1]) as http:
            assert http.get(f"/v1/models/{MODEL}").json()["state"] == "ready"
        positions = {place for each in asks if (place := each.headers[0].get("x-axon-queue-position"))}
        assert len(positions) > NUM_ASKS / 4, positions
        # A start that takes longer than the last one has no forecast, which those hear who had to ask again.
        expected = [float(wait) for each in asks if (wait := each.headers[0].get("x-axon-expected-wait-s"))]
        assert expected


async def journey(fleet: Fleet, asks: list[Asked], urls: list[str]) -> None:
    """All at once; while the worker that control has launched loads, a gateway and the leader are lost."""
    many = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with (
        asyncio.timeout(DEADLINE_S),
        httpx.AsyncClient(limits=many, timeout=DEADLINE_S) as client,
        asyncio.TaskGroup() as asking,
    ):
        for each in asks:
            asking.create_task(each.ask(client, urls))

        await asyncio.to_thread(wait_until, lambda: launched.watched(fleet.data_dir), "control launches a worker")
        [(name, worker)] = launched.processes(fleet.data_dir).items()
        with launched.paused(worker):
            await asyncio.to_thread(lose_gateway_and_leader, fleet, asks, urls)
    assert launched.processes(fleet.data_dir) == {name: worker}, "the next leader has found it"


def lose_gateway_and_leader(fleet: Fleet, asks: list[Asked], urls: list[str]) -> None:
    """When all requests are accepted, and the worker loads."""

    def are_decided() -> bool:
        return num_waiting(fleet) == NUM_ASKS or any(each.refusals for each in asks)

    wait_until(are_decided, "all are accepted", DEADLINE_S)
    assert not [each.refusals for each in asks if each.refusals]
    with fleet.client(urls[1]) as http:
        assert http.get(f"/v1/models/{MODEL}").json()["state"] == "loading"
    fleet.gateways[0].kill()
    leader, other = fleet.controls
    assert leader.metric("axon_leads") == leader.metric("axon_launches") == 1, "it was there first"
    leader.kill()
    wait_until(lambda: other.metric("axon_leads") == other.metric("axon_launches") == 1, "the other control leads")


def num_waiting(fleet: Fleet) -> float:
    """Turns of both gateways, as the second one knows them."""
    return fleet.gateways[1].metric("axon_waiting_turns")


def assert_told(asked: Asked) -> None:
    """The client knows its place in the line, unless it had to ask again and its answer was there by then."""
    told = asked.headers[0]
    if "x-axon-state" not in told:
        assert asked.num_tries > 1, asked
        return
    assert told["x-axon-state"] in ("cold", "loading", "ready"), asked  # the last if it had to be sent again
    assert 1 <= int(told["x-axon-queue-position"]) <= NUM_ASKS, asked
    assert asked.notices or not asked.streams, asked
