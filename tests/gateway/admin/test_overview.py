"""The admin API's one look at everything: of this gateway, and of the fleet; bounded, and without what is away."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from axon.domain.histogram import BOUNDS
from axon.domain.overview import Overview
from axon.domain.tenants.account import Bounds, Entry
from axon.domain.tenants.key import Scope
from axon.errors import DependencyDown
from axon.gateway.admin import overviews
from tests.gateway.admin.office import Office, opened_office, refused
from tests.gateway.admin.test_fleet import report
from tests.gateway.offers.builders import make_announced, make_offers, said

URL = "/v1/admin/overview"


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        yield office


async def look(office: Office) -> Overview:
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        reply = await admin.get(URL)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/json"
    return msgspec.json.decode(reply.content, type=Overview)


async def test_a_look_has_the_gateway_its_workers_models_and_queues(office: Office) -> None:
    small = make_announced("small", office.clock)
    small.fleet.learn([said("w1"), said("w2")])
    office.gateway.offers = make_offers(office.clock, small)
    office.gateway.follower.num_streams = 2
    await office.accounts.admit("fleet/small/", Entry(job_id="j", tokens=50.0, ttl_s=9.0), Bounds())
    await office.fleet.put(report(office.clock.now() - 2.0))
    seen = await look(office)
    assert (seen.object, seen.at, seen.problems) == ("overview", office.clock.now(), ())
    assert (seen.gateway.name, seen.gateway.streams, seen.gateways) == ("gateway-1", 2, ("gateway-1",))
    assert ([each.name for each in seen.workers], seen.num_workers) == (["w1", "w2"], 2)
    assert seen.bounds == BOUNDS
    [model] = seen.models
    assert (model.name, model.state, model.wanted) == ("small", "ready", 3)
    [queue] = seen.queues
    assert (queue.model, queue.requests, queue.tokens) == ("small", 1, 50.0)
    assert seen.control is not None
    assert (seen.control.leader, seen.control.age_s) == ("control-1", 2.0)


async def test_a_second_look_counts_the_first_as_a_request_of_its_tenant(office: Office) -> None:
    await look(office)
    seen = await look(office)
    assert (seen.gateway.requests, [each.tenant for each in seen.tenants]) == ({"200": 1}, ["ops"])


async def test_every_list_is_bounded_and_the_number_beside_it_counts_all(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("MODELS", 4), ("WORKERS", 3), ("QUEUES", 2)):
        monkeypatch.setattr(overviews, f"MAX_{name}", most)
    many = [make_announced(f"m{number}", office.clock) for number in range(6)]
    for offer in many:
        offer.fleet.learn([said("w")])
    office.gateway.offers = make_offers(office.clock, *many)
    seen = await look(office)
    assert (len(seen.models), len(seen.workers), len(seen.queues)) == (4, 3, 2)
    assert (seen.num_models, seen.num_workers, seen.num_queues) == (6, 6, 6)


async def test_what_cannot_be_read_is_said_and_the_rest_stands(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*what: object) -> None:
        raise DependencyDown("live is away")

    small = make_announced("small", office.clock)
    small.fleet.learn([said("w1")])
    office.gateway.offers = make_offers(office.clock, small)
    key = await office.key("ops", Scope.ADMIN)
    monkeypatch.setattr(office.cache, "get", away)
    monkeypatch.setattr(office.accounts, "beat", away)
    async with office.client(key) as admin:
        reply = await admin.get(URL)
    seen = msgspec.json.decode(reply.content, type=Overview)
    assert ([each.name for each in seen.workers], seen.queues, seen.control) == (["w1"], (), None)
    assert [problem.partition(":")[0] for problem in seen.problems] == [
        "control's report",
        "the list of gateways",
        "the queues",
    ]


async def test_it_needs_the_scope_admin(office: Office) -> None:
    for scopes in ((Scope.READ,), (Scope.INFERENCE,)):
        async with office.client(await office.key("ops", *scopes)) as other:
            await refused(other.get(URL), 403, "insufficient_permissions")
