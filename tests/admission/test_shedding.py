"""Whom a busy fleet turns away: who would wait longer than its tier's promise, and nobody else."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.admission import shedding
from axon.admission.admission import Admission, Entrant, Pulse
from axon.admission.config import AdmissionConfig
from axon.admission.limits import FIRST_OUTPUT
from axon.admission.meters import Meters
from axon.admission.place import Place
from axon.admission.rivals import Rivals
from axon.admission.shedding import Forecast
from axon.admission.ticket import Ticket
from axon.domain.presence import Load, Presence, service_rate
from axon.domain.tenants.account import Bound, Standing
from axon.domain.tenants.tenant import Terms, Tier
from axon.errors import Overloaded
from axon.runtime.clock import FakeClock
from axon.worker.child.throughput import Throughput
from tests.contracts.builders import make_job, make_presence

forecasts = st.builds(
    Forecast,
    tokens_per_s=st.none() | st.floats(0.1, 1e5),
    own_waiting=st.integers(0, 100),
    share=st.floats(0.01, 1),
    mean_work=st.floats(0, 1e4),
)
seconds = st.floats(0, 600)


@given(forecast=forecasts, patience_s=seconds, backlog_s=seconds)
def test_before_anything_is_known_nobody_is_turned_away_by_a_forecast(
    forecast: Forecast, patience_s: float, backlog_s: float
) -> None:
    held = shedding.bounds(forecast, patience_s=patience_s, backlog_s=backlog_s, jobs=10)
    assert held.jobs == (9 if forecast.own_waiting else 10)
    if forecast.tokens_per_s is None:
        assert (held.work, held.waiting_work) == (0, 0)


@given(forecast=forecasts, patience_s=st.floats(0.1, 600), more_s=st.floats(0, 600))
def test_the_more_patient_a_tier_the_more_may_wait_before_it(
    forecast: Forecast, patience_s: float, more_s: float
) -> None:
    def allowed(wait_s: float) -> float:
        held = shedding.bounds(forecast, patience_s=wait_s, backlog_s=0, jobs=10)
        return held.waiting_work or float("inf")

    assert allowed(patience_s + more_s) >= allowed(patience_s)


@given(forecast=forecasts, patience_s=st.floats(0.1, 600))
def test_a_tenant_of_whose_own_nothing_waits_is_never_turned_away_for_what_the_others_piled_up(
    forecast: Forecast, patience_s: float
) -> None:
    held = shedding.bounds(forecast, patience_s=patience_s, backlog_s=0, jobs=10)
    if forecast.own_s() < patience_s:
        assert held.waiting_work == 0


@given(forecast=forecasts, patience_s=seconds, backlog_s=seconds, extra_s=seconds)
def test_workers_that_are_to_start_lengthen_the_wait_and_no_other_bound(
    forecast: Forecast, patience_s: float, backlog_s: float, extra_s: float
) -> None:
    held = shedding.bounds(forecast, patience_s=patience_s, backlog_s=backlog_s, jobs=10)
    more = shedding.bounds(forecast, patience_s=patience_s, backlog_s=backlog_s, jobs=10, extra_s=extra_s)
    assert (more.jobs, more.work) == (held.jobs, held.work)
    assert (more.waiting_work or float("inf")) >= (held.waiting_work or float("inf"))
    if more.waiting_work:
        assert more.waiting_work == pytest.approx((patience_s + extra_s) * (forecast.tokens_per_s or 0))
    assert shedding.bounds(forecast, patience_s=patience_s, backlog_s=backlog_s, jobs=10, extra_s=0) == held


@given(rate=st.floats(1, 1e5), patience_s=st.floats(0.1, 60), over_s=st.floats(0, 60))
def test_who_waits_as_long_as_it_is_told_comes_in(rate: float, patience_s: float, over_s: float) -> None:
    forecast = Forecast(tokens_per_s=rate, own_waiting=100, share=1e-9, mean_work=1000)
    held = shedding.bounds(forecast, patience_s=patience_s, backlog_s=0, jobs=0)
    work = held.waiting_work + over_s * rate
    refused = shedding.refusal(Standing(refused=Bound.WAITING_WORK, waiting_work=work), held, forecast, vacancy_s=1.0)
    assert refused.retry_after_s is not None
    assert work - refused.retry_after_s * rate <= held.waiting_work * (1 + 1e-9) + 1e-6
    assert refused.retry_after_s <= over_s + 0.1


@dataclass
class Fleet:
    """An admission whose workers serve 100 tokens a second; a turn of no bytes is expected to cost 256."""

    config: AdmissionConfig = field(default_factory=AdmissionConfig)
    tokens_per_s: float | None = 100.0
    extra_s: float = 0.0
    """Seconds that a turn may wait for more workers."""

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.admission = Admission(
            MemoryAccounts(self.clock),
            self.config,
            self.clock,
            tokens_per_s=lambda deployment, pool: self.tokens_per_s,
            await_more=lambda deployment, pool: self.extra_s,
        )

    async def enter(self, number: int, tenant: str = "acme", tier: Tier = Tier.DEFAULT) -> Meters:
        entrant, meters = Entrant(job_id=f"{tenant}{number}", tenant=tenant, terms=Terms(), tier=tier), Meters()
        await self.admission.admit(entrant, meters)
        return meters

    async def fill(self, tier: Tier = Tier.DEFAULT, tenant: str = "acme") -> int:
        """As many as come in."""
        for number in range(10_000):
            try:
                await self.enter(number, tenant, tier)
            except Overloaded:
                return number
        raise AssertionError("everybody came in")


@pytest.mark.parametrize(("tier", "slo_s"), [(Tier.PRIORITY, 10), (Tier.DEFAULT, 30), (Tier.FLEX, 120)])
async def test_a_tenant_piles_up_as_much_as_is_served_within_its_tiers_promise(tier: Tier, slo_s: float) -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=10_000))
    num_in = await fleet.fill(tier)
    assert num_in * FIRST_OUTPUT / 100 == pytest.approx(slo_s, abs=2 * FIRST_OUTPUT / 100)
    with pytest.raises(Overloaded) as refused:
        await fleet.enter(20_000, tier=tier)
    assert refused.value.code == "slo_unreachable"
    assert refused.value.retry_after_s == pytest.approx(num_in * FIRST_OUTPUT / 100 - slo_s, abs=0.2)


async def test_a_turn_that_would_be_late_waits_while_more_workers_are_to_start_and_is_known_as_such() -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=10_000))
    num_in = await fleet.fill()
    fleet.extra_s = 60.0
    assert (await fleet.enter(20_000)).awaits_more
    assert not (await fleet.enter(1, "light")).awaits_more, "one that is in time waits for nobody"
    assert await fleet.fill(tenant="acme-again") > num_in
    fleet.extra_s = 0.0
    with pytest.raises(Overloaded) as refused:
        await fleet.enter(20_001)
    assert refused.value.code == "slo_unreachable"


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (AdmissionConfig(backlog_total=10_000, backlog_s=60), "backlog_tokens"),
        (AdmissionConfig(backlog_total=20, backlog_s=0), "overloaded"),
        (AdmissionConfig(backlog_total=10_000, backlog_s=0), "slo_unreachable"),
    ],
)
async def test_turns_that_wait_for_more_workers_are_bounded_in_number_work_and_time(
    config: AdmissionConfig, code: str
) -> None:
    fleet = Fleet(config, extra_s=60.0)
    num_in = await fleet.fill()
    assert num_in * FIRST_OUTPUT / 100 <= 30 + 60 + 2 * FIRST_OUTPUT / 100
    with pytest.raises(Overloaded) as refused:
        await fleet.enter(20_000)
    assert refused.value.code == code


async def test_another_tenant_comes_in_while_one_has_piled_up_too_much() -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=10_000))
    await fleet.fill()
    await fleet.enter(1, "light")


async def test_the_last_places_are_for_tenants_of_whose_own_nothing_waits() -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=80), tokens_per_s=None)
    assert await fleet.fill() == 70
    for number in range(10):
        await fleet.enter(1, f"light{number}")
        if number < 9:
            with pytest.raises(Overloaded):
                await fleet.enter(2, f"light{number}")
    with pytest.raises(Overloaded):
        await fleet.enter(1, "late")


async def test_what_runs_and_waits_in_all_is_bounded_for_everybody() -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=10_000, backlog_s=60, slo_ttft_default_s=0))
    num_in = await fleet.fill()
    assert num_in * FIRST_OUTPUT / 100 == pytest.approx(60, abs=FIRST_OUTPUT / 100)
    with pytest.raises(Overloaded) as refused:
        await fleet.enter(1, "light")
    assert refused.value.code == "backlog_tokens"


async def test_turns_that_run_are_not_in_anybodys_way() -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=10_000, backlog_s=0))
    num_in = await fleet.fill()
    ticket = str(Ticket(fleet="/", reserved=FIRST_OUTPUT))
    jobs = [make_job(f"acme{number}", ticket=ticket) for number in range(num_in)]
    await fleet.admission.beat([Pulse(job=job, waits=False) for job in jobs])
    for number in range(num_in - 1):
        await fleet.enter(1000 + number)


async def test_a_fleet_of_which_nothing_is_known_takes_as_many_turns_as_it_may() -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=300), tokens_per_s=None)
    assert await fleet.fill() == 300 - 300 // 8


def test_a_share_is_of_those_who_asked_just_now() -> None:
    rivals = Rivals()
    assert rivals.share("a", 1.0, now=0.0) == 1.0
    assert rivals.share("b", 3.0, now=1.0) == 0.75
    assert rivals.share("a", 1.0, now=2.0) == 0.25
    assert rivals.share("a", 1.0, now=7.0) == 1.0


def test_a_worker_learns_what_it_serves_while_every_slot_is_taken_and_at_no_other_time() -> None:
    service = Throughput()
    for tick in range(100):
        service.look(tick / 10, is_busy=False)
        service.served(5)
    assert service.tokens_per_s == 0
    for tick in range(100, 200):
        service.look(tick / 10, is_busy=True)
        service.served(20)
    assert service.tokens_per_s == pytest.approx(200, rel=0.1)
    for tick in range(200, 300):
        service.look(tick / 10, is_busy=False)
    assert service.tokens_per_s == pytest.approx(200, rel=0.1)


def test_workers_that_have_not_been_busy_count_like_those_that_have() -> None:
    def presence(tokens_per_s: float, *, draining: bool = False) -> Presence:
        load = Load(slots=4, free_slots=4, num_tokens=0, tokens_per_s=tokens_per_s)
        return replace(make_presence(draining=draining), load=load)

    assert service_rate([]) is None
    assert service_rate([presence(0)]) is None
    assert service_rate([presence(100), presence(0), presence(200)]) == 450
    assert service_rate([presence(100), presence(50, draining=True)]) == 100


async def test_a_fallback_with_room_goes_before_waiting_for_more_workers() -> None:
    fleet = Fleet(AdmissionConfig(backlog_total=10_000))
    await fleet.fill()
    fleet.extra_s = 60.0
    for number, (others, expected) in enumerate([((Place("spare"),), "spare/"), ((), "/")]):
        entrant = Entrant(job_id=f"turn_{number}", tenant="acme", terms=Terms(), others=others)
        meters = Meters()
        ticket = await fleet.admission.admit(entrant, meters)
        assert (ticket.fleet, meters.awaits_more) == (expected, not others)
