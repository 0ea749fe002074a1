"""A key that is revoked once reads nothing more at any gateway."""

import json
from contextlib import ExitStack

import httpx
import pytest

from tests.fleet.fleet import Fleet
from tests.journeys.server import wait_until
from tests.journeys.test_cancel import CHAT
from tests.journeys.test_revoked import Reading

pytestmark = pytest.mark.services


def test_the_streams_of_a_revoked_key_end_at_every_gateway(fleet: Fleet) -> None:
    made = json.loads(fleet.axon("keys", "create", "--tenant", "revoked", "--json"))
    headers = {"Authorization": f"Bearer {made['key']}"}
    with ExitStack() as stack:
        readings = []
        for member in fleet.gateways:
            http = stack.enter_context(httpx.Client(base_url=member.url, headers=headers, timeout=60))
            for body in ({**CHAT, "stream": True}, CHAT):
                readings.append(stack.enter_context(Reading(http, "/v1/chat/completions", body).going_on()))
        assert len(readings) == 4
        wait_until(lambda: all(each.text for each in readings[::2]), "the streams say something")
        fleet.axon("keys", "revoke", made["id"])
        wait_until(lambda: all(each.has_ended for each in readings), "they end")
    assert [each.error["code"] for each in readings] == ["key_revoked"] * 4
    assert [each.status for each in readings] == [200, 401, 200, 401]

    def num_cancelled() -> float:
        return sum(member.metric(r'axon_cancelled_total\{cause="key_revoked"\}') for member in fleet.gateways)

    wait_until(lambda: num_cancelled() == 4, "their turns are cancelled")
