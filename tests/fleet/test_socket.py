"""A WebSocket over a fleet whose workers and gateways are killed in the middle of a response: the rest comes."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.fleet.fleet import Fleet
from tests.journeys.server import wait_until
from tests.journeys.test_socket import LONG, TERMINAL

pytestmark = pytest.mark.services
LANES = ("a", "b")


class Reader:
    """A client that comes back to the fleet's one address and asks for the rest of each of its responses."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet, self._name = fleet, name
        self.got: dict[str, list[dict[str, Any]]] = {lane: [] for lane in LANES}
        self.num_connections = 0

    def read(self, meanwhile: Callable[["Reader"], None] = lambda reader: None) -> None:
        """Reads every lane to its end; ``meanwhile`` is called after each event."""
        while not all(self._is_over(lane) for lane in LANES):
            try:
                with self._connected() as line:
                    for lane in LANES:
                        self._ask(line, lane)
                    while not all(self._is_over(lane) for lane in LANES):
                        event = json.loads(line.recv(timeout=60))
                        self.got[event["stream_id"]].append(event)
                        meanwhile(self)
            except (ConnectionClosed, InvalidStatus, InvalidMessage, OSError):
                continue  # the gateway is gone, or not there yet: nginx says so

    @property
    def num_events(self) -> int:
        return min(map(len, self.got.values()))

    def text(self, lane: str) -> str:
        return "".join(each["delta"] for each in self.got[lane] if each["type"] == "response.output_text.delta")

    def _is_over(self, lane: str) -> bool:
        return bool(self.got[lane]) and self.got[lane][-1]["type"] in TERMINAL

    def _ask(self, line: Connection, lane: str) -> None:
        if not self.got[lane]:
            named = {"stream_id": lane, "idempotency_key": f"{self._name} {lane}"}
            line.send(json.dumps({"type": "response.create", **LONG, **named}))
        elif not self._is_over(lane):
            response_id, after = self.got[lane][0]["response"]["id"], self.got[lane][-1]["sequence_number"]
            ask = {"response_id": response_id, "starting_after": after, "stream_id": lane}
            line.send(json.dumps({"type": "response.retrieve", **ask}))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        address = self._fleet.url.replace("http://", "ws://") + "/v1/responses"
        headers = {"Authorization": f"Bearer {self._fleet.key}"}
        with connect(address, additional_headers=headers, open_timeout=60) as line:
            self.num_connections += 1
            yield line


def test_the_rest_comes_exactly_though_every_worker_and_gateway_is_killed(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.02).start(gateways=2, workers=2)
    victims = [*fleet.workers, *fleet.gateways]

    def kill_next(reader: Reader) -> None:
        if victims and reader.num_events >= 30 * (5 - len(victims)):
            member = victims.pop(0)
            member.kill()
            member.start(wait=False)  # what comes meanwhile is read, and not found in a buffer after the kills

    whole, reader = Reader(fleet, "undisturbed"), Reader(fleet, "killed")
    whole.read()
    reader.read(kill_next)
    assert not victims, "the responses were over before everything was killed"
    assert reader.num_connections >= 2, "no gateway was killed under the reader"
    for lane in LANES:
        numbers = [event["sequence_number"] for event in reader.got[lane]]
        assert numbers == list(range(len(numbers)))
        assert reader.got[lane][-1]["type"] == "response.incomplete"
        assert reader.text(lane) == whole.text(lane)
    for each in fleet.gateways:
        each.wait_ready()
    wait_until(lambda: sum(each.metric("axon_sockets") for each in fleet.gateways) == 0, "every socket is closed")
