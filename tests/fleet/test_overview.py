"""One look at a fleet: whichever gateway is asked tells of all workers and gateways, and of its own streams alone."""

import httpx
import msgspec
import pytest

from axon.domain.overview import Overview
from tests.fleet.face import Face
from tests.fleet.fleet import Fleet
from tests.journeys.server import wait_until


@pytest.mark.services
def test_every_gateway_tells_of_the_whole_fleet(fleet: Fleet, slow: Face) -> None:
    made = slow.axon("keys", "create", "--tenant", "ops", "--scope", "admin")
    made.check_returncode()
    headers = {"Authorization": f"Bearer {made.stdout.strip()}"}

    def look(url: str) -> Overview:
        reply = httpx.get(f"{url}/v1/admin/overview", headers=headers, timeout=60)
        assert reply.status_code == 200, reply.text
        return msgspec.json.decode(reply.content, type=Overview)

    for gateway in fleet.gateways:
        url = gateway.url

        def is_whole(url: str = url) -> bool:
            seen = look(url)
            return seen.num_workers == len(fleet.workers) and seen.num_gateways >= len(fleet.gateways)

        wait_until(is_whole, "it knows of all")
    one, other = (look(gateway.url) for gateway in fleet.gateways[:2])
    assert one.gateway.name != other.gateway.name
    assert {one.gateway.name, other.gateway.name} <= set(one.gateways)
    assert {each.incarnation for each in one.workers} == {each.incarnation for each in other.workers}
    assert (one.problems, [each.model for each in one.queues]) == ((), ["echo"])
