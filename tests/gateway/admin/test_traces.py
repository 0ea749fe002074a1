"""The admin API's traces: a turn's steps, the slowest turns, for admins alone and within bounds."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from axon.domain.tenants.key import Scope
from axon.domain.tracing.drawn import Drawn
from axon.domain.tracing.slowest import Slowest
from axon.domain.turn import Turn
from tests.domain.tracing.turns import turn_of
from tests.gateway.admin.office import Office, opened_office, refused

URL = "/v1/admin/traces"
TURN = turn_of([(0.5, 0.1, 1.0, 2.0)])


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        cast("Any", office.traced)._lookup = _Lookup()
        yield office


class _Lookup:
    async def find(self, turn_id: str) -> Turn | None:
        return TURN if turn_id == TURN.id else None

    async def behind_barrier(self) -> None:
        pass


async def test_a_turn_is_shown_by_its_id(office: Office) -> None:
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        reply = await admin.get(f"{URL}/{TURN.id}")
        shown = msgspec.json.decode(reply.content, type=Drawn)
        assert (shown.id, shown.spans[0].depth) == (TURN.id, 0)
        assert shown.ledger is not None
        assert TURN.ledger is not None
        assert (shown.ledger.queue_s, shown.ledger.billed_tokens) == (TURN.ledger.queue_s, TURN.ledger.billed)
        await refused(admin.get(f"{URL}/nobody"), 404, "turn_not_found")


async def test_the_slowest_are_listed_within_bounds(office: Office) -> None:
    now = office.clock.now()
    shift = now - (TURN.ended_at or 0.0)
    await office.store.turns.apply([replace(TURN, opened_at=TURN.opened_at + shift, ended_at=now)])
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        found = msgspec.json.decode((await admin.get(URL)).content, type=Slowest)
        assert [turn.id for turn in found.turns] == [TURN.id]
        for query in ("limit=0", "limit=101", "limit=x", "since_s=0", "since_s=99999999999"):
            await refused(admin.get(f"{URL}?{query}"), 400, "invalid_value")


async def test_traces_are_for_admins(office: Office) -> None:
    async with office.client(await office.key("ops")) as client:
        await refused(client.get(URL), 403, "insufficient_permissions")
        await refused(client.get(f"{URL}/{TURN.id}"), 403, "insufficient_permissions")
