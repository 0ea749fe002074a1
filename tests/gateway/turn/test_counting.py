"""Requests that open no turn: each counts, what it stores needs room, and what was erased gives its room back."""

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from axon.adapters.live.memory.live import open_memory_live
from axon.admission.admission import Admission
from axon.admission.config import AdmissionConfig
from axon.admission.quota import Quota
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Terms
from axon.errors import LimitReached, StorageFull
from axon.gateway.http.auth import Identity
from axon.gateway.http.middleware import METERS
from axon.gateway.turn.counting import count_request, note_erased, storing
from axon.gateway.turn.opening import Opening
from axon.runtime.clock import FakeClock
from axon.telemetry.metrics import Metrics

ONE = Stored(num_bytes=100, num_objects=1)
TERMS = Terms(requests_per_minute=3, stored_objects=2)


class Desk:
    def __init__(self, terms: Terms = TERMS) -> None:
        clock = FakeClock()
        unused: Any = None
        admission = Admission(open_memory_live(clock, retention_s=60.0).accounts, AdmissionConfig(), clock)
        self.held, self.metrics = Stored(), Metrics()
        self._terms = terms
        self._gateway = SimpleNamespace(
            opening=Opening(admission, unused, unused, clock), quota=Quota(self._measure, clock), metrics=self.metrics
        )

    async def _measure(self, tenant: str) -> Stored:
        return self.held

    def request(self) -> Request:
        app = SimpleNamespace(state=SimpleNamespace(gateway=self._gateway))
        who = Identity(key_id="k0000001", tenant="acme", terms=self._terms)
        return Request({"type": "http", "app": app, "headers": [], "axon.identity": who})

    async def store(self) -> None:
        async with storing(self.request(), ONE):
            self.held += ONE

    def num_rejected(self, reason: str) -> float:
        return float(self.metrics.requests.rejected.labels(reason, self.metrics.tenants.label("acme"))._value.get())


async def test_each_request_takes_one_and_the_answer_can_say_how_many_are_left() -> None:
    desk = Desk()
    left = []
    for _ in range(3):
        request = desk.request()
        await count_request(request)
        left.append(request.scope[METERS].seen["requests"].remaining)
    assert left == [2, 1, 0]
    request = desk.request()
    with pytest.raises(LimitReached):
        await count_request(request)
    assert request.scope[METERS].seen["requests"].remaining < 1


async def test_what_is_stored_needs_room_and_a_refusal_is_counted() -> None:
    desk = Desk(Terms(stored_objects=2))
    await desk.store()
    await desk.store()
    with pytest.raises(StorageFull) as refused:
        await desk.store()
    assert desk.held.num_objects == 2
    assert desk.num_rejected(refused.value.code) == 1


async def test_to_store_counts_as_a_request_before_room_is_looked_for() -> None:
    desk = Desk(Terms(requests_per_minute=1, stored_objects=1))
    await desk.store()
    with pytest.raises(LimitReached) as refused:
        await desk.store()
    assert not isinstance(refused.value, StorageFull)
    assert desk.num_rejected(refused.value.code) == 1


async def test_what_was_erased_gives_its_room_back_at_once() -> None:
    desk = Desk(Terms(stored_objects=1))
    await desk.store()
    with pytest.raises(StorageFull):
        await desk.store()
    desk.held = Stored()
    with pytest.raises(StorageFull):
        await desk.store()  # the measurement of a moment ago still holds
    note_erased(desk.request())
    await desk.store()


async def test_a_write_that_fails_takes_no_room() -> None:
    desk = Desk(Terms(stored_objects=1))
    with pytest.raises(OSError, match="disk"):
        async with storing(desk.request(), ONE):
            raise OSError("disk")
    await desk.store()
