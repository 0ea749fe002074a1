"""Admission through several gateways at once, on every kind of accounts: limits are exact."""

import asyncio
import time

import pytest

from axon.admission.admission import Admission, Entrant
from axon.admission.config import AdmissionConfig
from axon.admission.meters import Meters
from axon.domain.sampling import Sampling
from axon.domain.tenants.tenant import Terms
from axon.errors import LimitReached
from axon.ports.live import Live
from axon.runtime.clock import SystemClock
from tests.contracts.builders import make_job

NUM_ASKS, LIMIT = 200, 50
JOB = make_job(prompt_ids=(1,) * 10, sampling=Sampling(max_tokens=10))


@pytest.mark.parametrize(
    "terms",
    [
        Terms(requests_per_minute=LIMIT),
        Terms(concurrent=LIMIT),
        Terms(queued=LIMIT),
        Terms(tokens_per_minute=20 * LIMIT),
    ],
    ids=["requests", "concurrent", "queued", "tokens"],
)
async def test_two_hundred_asks_on_a_limit_of_fifty_through_two_gateways_are_exactly_fifty(
    live: Live, terms: Terms
) -> None:
    gateways = [Admission(live.accounts, AdmissionConfig(backlog_total=1000), SystemClock()) for _ in range(2)]

    async def ask(number: int) -> bool:
        gateway, job_id = gateways[number % 2], f"job{number}"
        entrant = Entrant(job_id=job_id, tenant="acme", terms=terms)
        try:
            ticket = await gateway.admit(entrant, Meters())
            await gateway.reserve(ticket, make_job(job_id, prompt_ids=JOB.prompt_ids, sampling=JOB.sampling), Meters())
        except LimitReached:
            return False
        return True

    began = time.monotonic()
    answers = await asyncio.gather(*map(ask, range(NUM_ASKS)))
    refilled = int((time.monotonic() - began) * LIMIT / 60)  # nothing, where the machine is not very slow
    assert LIMIT <= sum(answers) <= LIMIT + refilled


async def test_two_hundred_asks_on_a_full_house_of_fifty_leave_no_trace_of_those_refused(live: Live) -> None:
    gateways = [Admission(live.accounts, AdmissionConfig(backlog_total=LIMIT), SystemClock()) for _ in range(2)]
    terms = Terms(concurrent=NUM_ASKS)

    async def ask(number: int) -> str:
        try:
            entrant = Entrant(job_id=f"job{number}", tenant=f"tenant{number}", terms=terms)
            await gateways[number % 2].admit(entrant, Meters())
        except Exception as error:
            return type(error).__name__
        return ""

    answers = await asyncio.gather(*map(ask, range(NUM_ASKS)))
    assert sorted(set(answers)) == ["", "Overloaded"]
    assert answers.count("") == LIMIT
