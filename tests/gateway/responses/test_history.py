"""A conversation that a response begins: it is there exactly if the response's turn is."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from axon.admission.quota import Quota
from axon.domain.job import Job
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Terms
from axon.errors import DependencyDown, NotFound, StorageFull
from axon.gateway.responses.history import begun, begun_again
from axon.gateway.responses.requests import ConversationName, ResponseRequest
from axon.runtime.clock import SystemClock
from tests.contracts.builders import make_job
from tests.sessions.world import TENANT, Kept, open_kept

TALK = "conv_1"
ASK = ResponseRequest(model="echo", input="hi", conversation=ConversationName(metadata={"title": "hi"}))


class Entered:
    """An entry whose acceptance the test decides."""

    id = "resp_1"

    def __init__(self, twin: Job | None = None) -> None:
        self.is_new, self.is_accepted, self._twin = True, False, twin
        self.job = make_job(self.id, tenant=TENANT, session=TALK)

    async def twin(self) -> Job | None:
        return self._twin


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    async with open_kept(tmp_path) as opened:
        yield opened


def request_to(kept: Kept, terms: Terms | None = None) -> Request:
    async def nothing(tenant: str) -> Stored:
        return Stored()

    gateway = SimpleNamespace(sessions=kept.sessions, quota=Quota(nothing, SystemClock()), clock=SystemClock())
    app = SimpleNamespace(state=SimpleNamespace(gateway=gateway))
    who = SimpleNamespace(tenant=TENANT, terms=terms or Terms())
    return Request({"type": "http", "app": app, "headers": [], "axon.identity": who})


async def enter(kept: Kept, entry: Any, *, accepts: bool) -> None:
    with contextlib.suppress(DependencyDown):
        async with begun(request_to(kept), ASK, entry, TALK):
            assert (await kept.conversations.get(TENANT, TALK)).metadata == {"title": "hi"}
            entry.is_accepted = accepts
            if not accepts:
                raise DependencyDown("the queue is away")


async def is_there(kept: Kept) -> bool:
    try:
        await kept.conversations.get(TENANT, TALK)
    except NotFound:
        return False
    return True


async def test_the_conversation_of_an_accepted_turn_stays(kept: Kept) -> None:
    await enter(kept, Entered(), accepts=True)
    assert await is_there(kept)


async def test_the_conversation_of_a_turn_that_was_not_accepted_is_taken_back(kept: Kept) -> None:
    await enter(kept, Entered(), accepts=False)
    assert not await is_there(kept)


async def test_the_conversation_of_a_turn_that_the_log_has_all_the_same_stays(kept: Kept) -> None:
    await enter(kept, Entered(twin=make_job("resp_1", tenant=TENANT, session=TALK)), accepts=False)
    assert await is_there(kept)


async def test_a_duplicate_that_was_first_has_its_own_conversation(kept: Kept) -> None:
    entry = Entered()
    entry.job = make_job("resp_1", tenant=TENANT, session="conv_first")
    await enter(kept, entry, accepts=True)
    assert not await is_there(kept)


async def test_a_repeated_request_restores_the_conversation_of_its_turn(kept: Kept) -> None:
    entry: Any = Entered()
    await begun_again(request_to(kept), ASK, entry)
    assert not await is_there(kept)  # a new one's is stored when it is accepted
    entry.is_new = False
    for _ in range(2):
        await begun_again(request_to(kept), ASK, entry)
        assert await is_there(kept)


async def test_a_conversation_that_is_begun_counts_as_stored(kept: Kept) -> None:
    request, entry = request_to(kept, Terms(stored_objects=1)), Entered()
    async with begun(request, ASK, entry, TALK):  # type: ignore[arg-type]
        entry.is_accepted = True
    with pytest.raises(StorageFull):
        async with begun(request, ASK, Entered(), "conv_2"):  # type: ignore[arg-type]
            raise AssertionError("was let in")
