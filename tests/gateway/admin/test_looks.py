"""The parts of an overview, each made of what the gateway knows."""

from dataclasses import replace

import pytest

from axon.admission.line import Line
from axon.admission.place import Place
from axon.domain.fleet.reconcile import GroupState
from axon.domain.fleet.status import FleetStatus
from axon.domain.overview import QueueLook, TenantLook, VersionLook
from axon.domain.presence import Activity, Service, TenantActivity
from axon.gateway.admin.looks import (
    METRICS,
    control_look,
    gateway_look,
    model_look,
    places_of,
    queue_looks,
    tenant_looks,
    worker_look,
)
from axon.runtime.clock import FakeClock
from axon.telemetry.metrics import Metrics
from axon.telemetry.reading import Reading
from tests.domain.fleet.builders import ONE, TWO
from tests.gateway.offers.builders import make_announced, said


def test_a_worker_is_shown_as_it_last_announced_itself() -> None:
    presence = said("w1", draining=True)
    load = replace(
        presence.load,
        service=Service(jobs=3, prompt_tokens=20, answer_tokens=9, kv_use=0.25),
        activity=Activity(
            running=2, ttft_counts=(1,), gap_counts=(0, 4), tenants=(TenantActivity(tenant="acme", running=2),)
        ),
    )
    look = worker_look(replace(presence, load=load, pool="gold", zone="z1"), presence.at + 1.5)
    assert (look.name, look.incarnation, look.model, look.version) == ("w1", "w1-life", "small", "v1")
    assert (look.pool, look.zone, look.draining, look.age_s) == ("gold", "z1", True, 1.5)
    assert (look.slots, look.free_slots, look.running, look.num_tokens) == (4, 4, 2, 17)
    assert (look.requests, look.prompt_tokens, look.answer_tokens, look.kv_use) == (3, 20, 9, 0.25)
    assert (look.ttft_counts, look.gap_counts) == ((1,), (0, 4))
    assert look.tenants == (TenantActivity(tenant="acme", running=2),)


def test_a_clock_that_goes_ahead_makes_no_worker_younger_than_now() -> None:
    assert worker_look(said("w1"), 0.0).age_s == 0.0


def test_a_model_that_nobody_has_served_yet_is_unknown() -> None:
    look = model_look(make_announced("small", FakeClock()), None)
    assert (look.state, look.versions, look.workers, look.wanted) == ("unknown", (), 0, None)


def test_a_model_counts_the_workers_of_each_version_and_what_control_wants() -> None:
    offer = make_announced("small", FakeClock())
    offer.fleet.learn([said("a"), said("b"), said("c", "v2"), said("d", "v2", draining=True)])
    groups = (
        GroupState(group=ONE, wanted=2, reason="", starting=1, ready=1),
        GroupState(group=TWO, wanted=1, reason="", ready=1),
    )
    look = model_look(offer, FleetStatus(at=1.0, leader="c", term=1, launcher="process", groups=groups))
    assert (look.state, look.workers, look.draining) == ("ready", 3, 1)
    assert (look.wanted, look.starting, look.ready) == (3, 1, 2)
    assert look.versions == (
        VersionLook(version="v1", state="ready", workers=2, is_stable=True),
        VersionLook(version="v2", state="ready", workers=1, draining=1),
    )


def test_turns_wait_for_the_shared_pool_and_for_each_that_has_workers() -> None:
    small, other = make_announced("small", FakeClock()), make_announced("other", FakeClock())
    small.fleet.learn([replace(said("a"), pool="gold"), said("b")])
    places = places_of([small, other])
    assert places == [Place("small"), Place("small", "gold"), Place("other")]
    assert queue_looks(places, [Line(), Line(3, 120.04)]) == (
        QueueLook(model="small"),
        QueueLook(model="small", pool="gold", requests=3, tokens=120.0),
    )


def test_the_gateways_own_numbers_are_those_of_its_metrics() -> None:
    metrics = Metrics()
    metrics.requests.answered.labels("chat", "200", "acme").inc(2)
    metrics.requests.answered.labels("models", "200", "globex").inc(3)
    metrics.requests.answered.labels("chat", "429", "acme").inc()
    metrics.requests.rejected.labels("rate", "initech").inc(4)
    metrics.turns.time_to_first_token.labels("small", "v1", "standard").observe(0.3)
    reading = Reading(metrics.registry, METRICS)
    look = gateway_look(reading, name="g", version="1", up_s=2.00049, draining=False, streams=3)
    assert (look.name, look.version, look.up_s, look.streams) == ("g", "1", 2.0, 3)
    assert (look.requests, look.rejected) == ({"200": 5, "429": 1}, 4)
    assert (sum(look.ttft.counts), sum(look.gaps.counts)) == (1, 0)
    assert look.ttft.counts[look.ttft.bounds.index(0.5)] == 1
    assert tenant_looks(reading) == (
        TenantLook(tenant="acme", requests=3),
        TenantLook(tenant="globex", requests=3),
        TenantLook(tenant="initech", rejected=4),
    )


@pytest.mark.parametrize("age_s", [2.5, -1.0])
def test_control_is_shown_with_the_age_of_its_report(age_s: float) -> None:
    status = FleetStatus(at=100.0, leader="c1", term=1, launcher="process", num_replicas=4, problem="no room")
    look = control_look(status, 100.0 + age_s)
    assert look is not None
    assert (look.leader, look.age_s, look.num_replicas, look.problem) == ("c1", max(0.0, age_s), 4, "no room")
    assert control_look(None, 100.0) is None
