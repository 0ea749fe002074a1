"""Admission with a fake clock and records in memory, and a job let in by it."""

from dataclasses import dataclass, field, replace
from typing import Any

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.admission.admission import Admission, Entrant
from axon.admission.config import AdmissionConfig
from axon.admission.meters import Meters
from axon.admission.ticket import Ticket
from axon.domain.job import Job
from axon.domain.sampling import Sampling
from axon.domain.tenants.account import Bounds, Round, Standing
from axon.domain.tenants.tenant import Terms
from axon.errors import DependencyDown
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job

TTL_S = 60.0


@dataclass
class Records:
    """What ended turns used, as the store has it."""

    used: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, float]] = field(default_factory=list)
    away: bool = False

    async def __call__(self, tenant: str, *, since: float) -> int:
        if self.away:
            raise DependencyDown("the store is away")
        self.asked.append((tenant, since))
        return self.used.get(tenant, 0)


@dataclass
class Door:
    """An admission on accounts whose time we hold."""

    terms: Terms = field(default_factory=Terms)
    total: int = 1000
    clock: FakeClock = field(default_factory=FakeClock)
    records: Records = field(default_factory=Records)

    def __post_init__(self) -> None:
        self.accounts = MemoryAccounts(self.clock)
        config = AdmissionConfig(backlog_total=self.total, ticket_s=TTL_S)
        self.admission = Admission(self.accounts, config, self.clock, spending=self.records)
        self.meters = Meters()

    async def look(self, account: str) -> Standing:
        bounds = Bounds(
            tokens_per_minute=self.terms.tokens_per_minute, requests_per_minute=self.terms.requests_per_minute
        )
        [standing] = await self.accounts.beat([Round(account=account, beats=(), bounds=bounds, ttl_s=1.0)])
        return standing

    async def tokens_left(self, tenant: str = "acme") -> float:
        return (await self.look(f"tenant/{tenant}")).tokens

    async def backlog(self, tenant: str = "acme") -> tuple[int, int]:
        """Of the tenant, and of all."""
        return (await self.look(f"tenant/{tenant}")).jobs, (await self.look("fleet/small/")).jobs

    async def admit(self, job_id: str, *, tenant: str = "acme", num_bytes: int = 0) -> Ticket:
        entrant = Entrant(job_id=job_id, tenant=tenant, terms=self.terms, deployment="small", num_bytes=num_bytes)
        return await self.admission.admit(entrant, self.meters)

    async def enter(self, job_id: str, *, prompt: int = 3, output: int = 0, tenant: str = "acme") -> Job:
        """A job that sets prompt and output aside: no answer is known yet, so that its most counts."""
        ticket = await self.admit(job_id, tenant=tenant)
        job = make_job(
            job_id,
            tenant=tenant,
            prompt_ids=tuple(range(prompt)),
            sampling=Sampling(max_tokens=output),
            created=self.clock.now(),
        )
        return replace(job, ticket=str(await self.admission.reserve(ticket, job, self.meters)))


def make_door(*, total: int = 1000, clock: FakeClock | None = None, **terms: Any) -> Door:
    return Door(Terms(**terms), total, clock or FakeClock())
