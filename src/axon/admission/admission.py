"""Admission control: checks a turn against its tenant's limits and the fleet's capacity. Knows no prompt and no HTTP.

    admit ──► reserve ──► (accepted) ──► beat … beat ──► settle
      └───────────┴─ withdraw

A turn is charged to two accounts: its tenant's, and that of the pool of workers that is to run it.
"""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from axon.admission import limits, shedding
from axon.admission.config import AdmissionConfig
from axon.admission.line import line_of
from axon.admission.meters import Meters
from axon.admission.place import Place
from axon.admission.rivals import Rivals
from axon.admission.stagger import Stagger
from axon.admission.ticket import Ticket, window_start
from axon.domain.job import Job
from axon.domain.tenants.account import Beat, Bound, Bounds, Entry, Round, Settlement, Standing
from axon.domain.tenants.tenant import Terms, Tier
from axon.errors import AxonError, Overloaded
from axon.ports.live import Accounts
from axon.runtime.clock import Clock


class Spending(Protocol):
    """Reads the tokens that a tenant's ended turns have used since a Unix time, from the store."""

    async def __call__(self, tenant: str, *, since: float) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A turn that asks for admission, as known before its prompt is rendered."""

    job_id: str
    tenant: str
    terms: Terms
    deployment: str = ""
    """Name of the deployment that it asks."""
    tier: Tier = Tier.DEFAULT
    pool: str = ""
    """Pool of workers that is to run it; empty for the shared workers."""
    others: tuple[Place, ...] = ()
    """Where it may run instead while that is full, in this order."""
    num_bytes: int = 0
    """Size of the request's body."""

    @property
    def places(self) -> tuple[Place, ...]:
        """Where it may run, in this order."""
        return (Place(self.deployment, self.pool), *self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """A heartbeat of a job, from whoever holds the job."""

    job: Job
    used: int = 0
    more: int = 0
    waits: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Tokens that a running job may use."""

    tokens: float
    """Tokens set aside for it in all, the prompt's included."""
    spent: str = ""
    """Name of the budget that is used up, ``day`` or ``month``; empty when none is."""


class Admission:
    """Issues tickets and settles them, each once, by the job's id."""

    def __init__(
        self,
        accounts: Accounts,
        config: AdmissionConfig,
        clock: Clock,
        *,
        spending: Spending | None = None,
        tokens_per_s: Callable[[str, str], float | None] = lambda deployment, pool: None,
        await_more: Callable[[str, str], float] = lambda deployment, pool: 0.0,
    ) -> None:
        """``tokens_per_s`` returns the throughput of a deployment's pool when busy, None if unknown. ``await_more``
        returns the seconds that a turn may wait for more workers of a full pool, 0 if no more can come."""
        self._accounts, self._config, self._clock = accounts, config, clock
        self._spending, self._tokens_per_s, self._await_more = spending, tokens_per_s, await_more
        self._rivals: dict[str, Rivals] = {}
        self._stagger = Stagger()

    async def admit(
        self, entrant: Entrant, meters: Meters, *, is_shared: Callable[[], Awaitable[bool]] | None = None
    ) -> Ticket:
        """Returns a ticket for the job, or raises a refusal with the time to retry after. Sets no tokens aside yet.

        ``is_shared`` says whether a duplicate request's turn has the same id, and with it the tenant's ticket, which
        then outlives a refusal of this one.
        """
        terms = entrant.terms
        bounds = limits.bounds_of(terms, self._clock.now())
        entry = Entry(job_id=entrant.job_id, least=1, ttl_s=self._config.ticket_s)
        standing = await self._enter(entrant.tenant, entry, bounds)
        expected = limits.expected_output(standing)
        tokens = entrant.num_bytes / limits.BYTES_PER_TOKEN + expected
        _note(meters, standing, bounds)
        if standing.refused:
            raise self._refusal(entrant.tenant, standing, bounds, tokens=tokens)
        ticket = Ticket(
            expected=expected,
            tokens_per_minute=terms.tokens_per_minute,
            tokens_per_day=terms.tokens_per_day,
            tokens_per_month=terms.tokens_per_month,
        )
        try:
            return await self._admit_somewhere(ticket, entrant, meters, tokens, own_waiting=standing.waiting - 1)
        except AxonError:
            if is_shared is None or not await is_shared():
                withdrawn = _withdrawn(_tenant(entrant.tenant), entrant.job_id, bounds, uncounted=True)
                await self._accounts.settle([withdrawn])
            raise

    async def switch(self, ticket: Ticket, entrant: Entrant, meters: Meters) -> Ticket:
        """Moves a ticket to the account of another deployment, on which the turn's session is; raises if that is full.

        The tenant's own waiting turns are not forecast again: they were when the ticket was issued.
        """
        [place] = entrant.places
        tokens = entrant.num_bytes / limits.BYTES_PER_TOKEN + ticket.expected
        new = await self._admit_fleet(ticket, place, entrant, meters, tokens, own_waiting=0)
        await self._accounts.settle([_withdrawn(_fleet(ticket), entrant.job_id, Bounds())])
        return new

    async def reserve(self, ticket: Ticket, job: Job, meters: Meters) -> Ticket:
        """Sets aside the turn's expected tokens, at most the size of the bucket."""
        output = job.choices * min(ticket.expected, job.sampling.max_tokens)
        ticket = replace(ticket, reserved=job.num_prompt_tokens + output)
        if not ticket.is_metered:
            return ticket
        bounds, least = ticket.bounds(self._clock.now()), job.num_prompt_tokens + min(1, output)
        entry = Entry(job_id=job.id, tokens=ticket.reserved, least=least, ttl_s=self._config.ticket_s)
        standing = await self._enter(job.tenant, entry, bounds)
        meters.note("tokens", standing.tokens, per_minute=bounds.tokens_per_minute)
        if standing.refused:
            raise self._refusal(job.tenant, standing, bounds, tokens=ticket.reserved, least=least)
        return ticket

    async def settle(self, job: Job, used: int) -> None:
        """Ends the job's ticket, once: tokens set aside beyond ``used`` return, tokens used beyond them are charged."""
        ticket, now = Ticket.parse(job.ticket), self._clock.now()
        output = max(0, used - job.num_prompt_tokens) / job.choices
        await self._accounts.settle(
            [
                Settlement(
                    account=account,
                    job_id=job.id,
                    used=used,
                    output=output,
                    took_s=max(0.0, now - job.created),
                    bounds=bounds,
                )
                for account, bounds in (
                    (_tenant(job.tenant), ticket.bounds(now)),
                    (_fleet(ticket), Bounds()),
                )
            ]
        )

    async def withdraw(self, ticket: Ticket, tenant: str, job_id: str) -> None:
        """Takes back a ticket whose turn was not accepted. Idempotent."""
        bounds = ticket.bounds(self._clock.now())
        await self._accounts.settle(
            [_withdrawn(_tenant(tenant), job_id, bounds), _withdrawn(_fleet(ticket), job_id, Bounds())]
        )

    async def readmit(self, job: Job) -> None:
        """Counts a job that is put on the queue again; never refuses. Sets its tokens aside unless they still are."""
        await self._beat([Pulse(job=job)], again=True)

    async def beat(self, pulses: Sequence[Pulse]) -> dict[str, Allowed]:
        """Heartbeats of jobs: extends their tickets and charges what they have used.

        Returns what each job may use, by job id, without those that were settled meanwhile.
        """
        return await self._beat(pulses)

    async def renew(self, jobs: Sequence[Job]) -> None:
        """Extends the tickets of accepted jobs that have not ended, waiting or running."""
        await self._beat([Pulse(job=job) for job in jobs])

    async def count(self, tenant: str, job_id: str, terms: Terms, meters: Meters) -> None:
        """Counts one request that opens no turn, or raises a refusal with the time to retry after."""
        bounds = Bounds(requests_per_minute=terms.requests_per_minute)
        standing = await self._accounts.admit(_tenant(tenant), Entry(job_id=job_id, ttl_s=0.0), bounds)
        meters.note("requests", standing.requests, per_minute=bounds.requests_per_minute)
        if standing.refused:
            raise self._refusal(tenant, standing, bounds, tokens=0)

    async def _admit_somewhere(
        self, ticket: Ticket, entrant: Entrant, meters: Meters, tokens: float, *, own_waiting: int
    ) -> Ticket:
        """The ticket for the first place that is not full, else for the first one where more workers are to start;
        raises what the first place says if there is neither."""
        refused: dict[Place, Overloaded] = {}
        for place in entrant.places:
            try:
                return await self._admit_fleet(ticket, place, entrant, meters, tokens, own_waiting=own_waiting)
            except Overloaded as error:
                refused[place] = error
        for place in (place for place, error in refused.items() if error.code == shedding.LATE):
            if (extra_s := self._await_more(place.deployment, place.pool)) > 0:
                with contextlib.suppress(Overloaded):
                    ticket = await self._admit_fleet(
                        ticket, place, entrant, meters, tokens, own_waiting=own_waiting, extra_s=extra_s
                    )
                    meters.awaits_more = True
                    return ticket
        raise refused[entrant.places[0]]

    async def _admit_fleet(
        self,
        ticket: Ticket,
        place: Place,
        entrant: Entrant,
        meters: Meters,
        tokens: float,
        *,
        own_waiting: int,
        extra_s: float = 0.0,
    ) -> Ticket:
        config, terms, ticket = self._config, entrant.terms, replace(ticket, fleet=place.fleet)
        rivals = self._rivals.setdefault(ticket.fleet, Rivals())
        forecast = shedding.Forecast(
            tokens_per_s=self._tokens_per_s(place.deployment, place.pool),
            own_waiting=own_waiting,
            share=rivals.share(entrant.tenant, terms.weight, self._clock.monotonic()),
            mean_work=rivals.mean_work,
        )
        bounds = shedding.bounds(
            forecast,
            patience_s=config.patience_s(entrant.tier),
            backlog_s=config.backlog_s,
            jobs=config.backlog_total,
            extra_s=extra_s,
        )
        entry = Entry(job_id=entrant.job_id, tokens=tokens, ttl_s=config.ticket_s)
        standing = await self._accounts.admit(_fleet(ticket), entry, bounds)
        rivals.saw(standing)
        if standing.refused:
            vacancy_s = self._vacancy_s(entrant.tenant, standing, forecast.share)
            raise shedding.refusal(standing, bounds, forecast, vacancy_s=vacancy_s)
        meters.line = line_of(standing)
        return ticket

    def _refusal(
        self, tenant: str, standing: Standing, bounds: Bounds, *, tokens: float, least: float = 1
    ) -> AxonError:
        vacancy_s = self._vacancy_s(tenant, standing)
        return limits.refusal(standing, bounds, tokens=tokens, least=least, vacancy_s=vacancy_s)

    def _vacancy_s(self, tenant: str, standing: Standing, share: float = 1.0) -> float:
        """Seconds until capacity is likely to be free for the tenant, which gets ``share`` of what becomes free."""
        vacancy_s = limits.vacancy_s(standing)
        if standing.refused not in (Bound.JOBS, Bound.WAITING, Bound.BUDGET_HELD) or standing.mean_s is None:
            return vacancy_s
        return self._stagger.next_s(tenant, vacancy_s / share, self._clock.monotonic())

    async def _enter(self, tenant: str, entry: Entry, bounds: Bounds) -> Standing:
        async def ask(bounds: Bounds) -> Standing:
            return await self._accounts.admit(_tenant(tenant), entry, bounds)

        return await self._seeded(tenant, bounds, ask)

    async def _beat(self, pulses: Sequence[Pulse], *, again: bool = False) -> dict[str, Allowed]:
        now = self._clock.now()
        by_tenant: dict[str, list[Pulse]] = {}
        by_fleet: dict[str, list[Pulse]] = {}
        for pulse in pulses:
            by_tenant.setdefault(pulse.job.tenant, []).append(pulse)
            by_fleet.setdefault(Ticket.parse(pulse.job.ticket).fleet, []).append(pulse)
        # A tenant's terms may differ between its jobs: those of its newest job apply.
        bounds = {
            tenant: Ticket.parse(max(group, key=lambda pulse: pulse.job.created).job.ticket).bounds(now)
            for tenant, group in by_tenant.items()
        }
        rounds = [
            self._round(_tenant(tenant), group, bounds[tenant], again=again) for tenant, group in by_tenant.items()
        ]
        fleets = [
            self._round(f"fleet/{name}", [replace(pulse, more=0) for pulse in group], Bounds(), again=again)
            for name, group in by_fleet.items()
        ]
        standings = await self._accounts.beat([*rounds, *fleets])
        allowed: dict[str, Allowed] = {}
        for tenant, each, standing in zip(by_tenant, rounds, standings, strict=False):
            if standing.unseeded:
                with contextlib.suppress(AxonError):  # the store is away: a later round seeds the budget
                    standing = await self._seeded(tenant, each.bounds, self._again(each), standing)
            budget = standing.over(each.bounds.budgets)
            for job_id, reserved in standing.reserved.items():
                allowed[job_id] = Allowed(tokens=reserved, spent=budget.name if budget else "")
        return allowed

    def _again(self, each: Round) -> Callable[[Bounds], Awaitable[Standing]]:
        async def ask(bounds: Bounds) -> Standing:
            [standing] = await self._accounts.beat([replace(each, bounds=bounds)])
            return standing

        return ask

    def _round(self, account: str, pulses: Sequence[Pulse], bounds: Bounds, *, again: bool) -> Round:
        beats = tuple(
            Beat(
                job_id=pulse.job.id,
                reserved=Ticket.parse(pulse.job.ticket).reserved,
                used=pulse.used,
                more=pulse.more,
                waits=pulse.waits,
                again=again,
            )
            for pulse in pulses
        )
        return Round(account=account, beats=beats, bounds=bounds, ttl_s=self._config.ticket_s)

    async def _seeded(
        self,
        tenant: str,
        bounds: Bounds,
        ask: Callable[[Bounds], Awaitable[Standing]],
        standing: Standing | None = None,
    ) -> Standing:
        """Calls an account. If it does not know the earlier use of a budget, reads that from the store and calls
        again."""
        standing = standing or await ask(bounds)
        if not standing.unseeded:
            return standing
        seeded = []
        for budget in bounds.budgets:
            since = window_start(budget.name, budget.window)
            seed = await self._spending(tenant, since=since) if self._spending else 0
            seeded.append(replace(budget, seed=seed))
        return await ask(replace(bounds, budgets=tuple(seeded)))


def _tenant(tenant: str) -> str:
    return f"tenant/{tenant}"


def _fleet(ticket: Ticket) -> str:
    return f"fleet/{ticket.fleet}"


def _withdrawn(account: str, job_id: str, bounds: Bounds, *, uncounted: bool = False) -> Settlement:
    return Settlement(account=account, job_id=job_id, used=0, bounds=bounds, uncounted=uncounted)


def _note(meters: Meters, standing: Standing, bounds: Bounds) -> None:
    meters.note("requests", standing.requests, per_minute=bounds.requests_per_minute)
    meters.note("tokens", standing.tokens, per_minute=bounds.tokens_per_minute)
