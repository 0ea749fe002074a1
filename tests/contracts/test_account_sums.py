"""The accounts twin's sums: whatever happens to its jobs, they say what adding the jobs up says."""

import random

import pytest

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.domain.tenants.account import Beat, Bounds, Budget, Entry, Round, Settlement, Standing
from axon.runtime.clock import FakeClock

_ACCOUNT = "tenant/acme"
_BOUNDS = (
    Bounds(),
    Bounds(tokens_per_minute=500.0),
    Bounds(jobs=6, waiting=4),
    Bounds(budgets=(Budget(name="day", window=1, limit=10_000, seed=5),)),
)


class Recount:
    """What the account's jobs are known to be, from the outside: who is in, until when, with what set aside."""

    def __init__(self) -> None:
        self.until: dict[str, float] = {}

    def num_inside(self, now: float) -> int:
        return sum(until > now for until in self.until.values())


@pytest.mark.parametrize("seed", range(20))
async def test_sums_follow_every_change_of_a_job(seed: int) -> None:
    numbers, clock, recount = random.Random(seed), FakeClock(), Recount()
    accounts, bounds = MemoryAccounts(clock), _BOUNDS[seed % len(_BOUNDS)]
    for _ in range(300):
        clock.advance(numbers.choice((0.0, 0.1, 3.0)))
        job_id, ttl_s = f"job-{numbers.randrange(12)}", numbers.choice((2.0, 5.0))
        match numbers.randrange(3):
            case 0:
                entry = Entry(job_id=job_id, tokens=numbers.random() * 90, ttl_s=ttl_s)
                standing = await accounts.admit(_ACCOUNT, entry, bounds)
                if standing.refused is None:
                    recount.until[job_id] = clock.monotonic() + ttl_s
            case 1:
                beat = Beat(
                    job_id=job_id,
                    reserved=numbers.random() * 90,
                    used=numbers.random() * 120,
                    more=numbers.random() * 20,
                    waits=numbers.choice((True, False, None)),
                    again=numbers.random() < 0.3,
                )
                [standing] = await accounts.beat([Round(account=_ACCOUNT, beats=(beat,), bounds=bounds, ttl_s=ttl_s)])
                if job_id in standing.reserved:
                    recount.until[job_id] = clock.monotonic() + ttl_s
            case _:
                await accounts.settle([Settlement(account=_ACCOUNT, job_id=job_id, used=3.0, bounds=bounds)])
                recount.until.pop(job_id, None)
                [standing] = await accounts.beat([Round(account=_ACCOUNT, beats=(), bounds=bounds, ttl_s=ttl_s)])
        assert_adds_up(accounts, standing)
        assert standing.jobs == recount.num_inside(clock.monotonic())


def assert_adds_up(accounts: MemoryAccounts, standing: Standing) -> None:
    account = accounts._find(_ACCOUNT)
    inside = [job for job in account.jobs.values() if job.until is not None]
    waiting = [job for job in inside if job.waits]
    assert (standing.jobs, standing.waiting) == (len(inside), len(waiting))
    assert standing.work == pytest.approx(sum(job.left for job in inside), abs=1e-6)
    assert standing.waiting_work == pytest.approx(sum(job.left for job in waiting), abs=1e-6)
    assert all(job.until >= account.first_until for job in inside if job.until is not None)
