"""Tenants and plans, as those who run a server change them. Knows neither HTTP nor a terminal."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from axon.domain.storage import Stored
from axon.domain.tenant import DEFAULT_PLAN, Limits, Plan, Tenant, Terms, check_id, check_limits, check_name, terms_of
from axon.domain.usage import UsageSum
from axon.errors import Conflict, NotFound
from axon.ports.store import Store
from axon.runtime.clock import Clock

_TRIES = 5


class Tenancy:
    """The verbs of the admin API and the command line; each checks what it is told before it writes."""

    def __init__(self, store: Store, clock: Clock, *, defaults: Terms | None = None) -> None:
        self._store, self._clock = store, clock
        self._defaults = defaults or Terms()

    async def tenants(self) -> Sequence[Tenant]:
        """All of them, the oldest first."""
        return await self._store.tenants.all()

    async def tenant(self, tenant_id: str) -> Tenant:
        """Raises ``NotFound``."""
        found = await self._store.tenants.get(tenant_id)
        if found is None:
            raise NotFound(f"There is no tenant '{tenant_id}'.", code="tenant_not_found", param="tenant")
        return found

    async def terms(self, tenant: Tenant) -> Terms:
        """What holds for its requests."""
        return terms_of(tenant, await self._store.plans.get(tenant.plan), self._defaults)

    async def stored(self, tenant_id: str) -> Stored:
        """What is kept for it now, against ``stored_bytes`` and ``stored_objects`` of its terms."""
        return await self._store.storage.stored(tenant_id)

    async def create(
        self, tenant_id: str, *, name: str = "", plan: str = DEFAULT_PLAN, limits: Limits | None = None
    ) -> Tenant:
        """A new tenant; raises ``Conflict`` when there is one of this id."""
        check_id(tenant_id)
        made = Tenant(id=tenant_id, name=name, plan=plan, limits=limits or Limits(), created_at=self._clock.now())
        await self._check(made)
        return await self._store.tenants.add(made)

    async def change(self, tenant_id: str, change: Callable[[Tenant], Tenant]) -> Tenant:
        """The tenant as ``change`` makes it of what it is; what somebody else changes meanwhile is not lost."""
        for _ in range(_TRIES):
            old = await self.tenant(tenant_id)
            new = change(old)
            await self._check(new)
            if new == old or await self._store.tenants.change(old, new):
                return new
        raise Conflict(f"The tenant '{tenant_id}' is being changed by others; try again.", code="tenant_changed")

    async def suspend(self, tenant_id: str) -> Tenant:
        """Its keys open nothing from now on; one that is suspended already keeps its first time."""
        now = self._clock.now()
        return await self.change(tenant_id, lambda old: replace(old, suspended_at=old.suspended_at or now))

    async def resume(self, tenant_id: str) -> Tenant:
        """Its keys are good again, as far as they were."""
        return await self.change(tenant_id, lambda old: replace(old, suspended_at=None))

    async def remove(self, tenant_id: str) -> None:
        """Forgets a tenant whose keys have all ended; what it had is kept under its id, which is not given again."""
        now = self._clock.now()
        good = [key.id for key in await self._store.keys.all(tenant=tenant_id) if key.valid(now)]
        if good:
            raise Conflict(
                f"The tenant '{tenant_id}' has keys that are good: {_few(good)}. Revoke them first.",
                code="tenant_has_keys",
            )
        if not await self._store.tenants.remove(tenant_id, at=now):
            await self.tenant(tenant_id)

    async def plans(self) -> Sequence[Plan]:
        """All of them, by name."""
        return await self._store.plans.all()

    async def plan(self, name: str) -> Plan:
        """Raises ``NotFound``."""
        found = await self._store.plans.get(name)
        if found is None:
            raise NotFound(f"There is no plan '{name}'.", code="plan_not_found", param="plan")
        return found

    async def create_plan(self, name: str, limits: Limits) -> Plan:
        """A new plan; raises ``Conflict`` when there is one of this name."""
        check_id(name)
        check_limits(limits)
        made = Plan(name=name, limits=limits)
        if not await self._store.plans.add(made):
            raise Conflict(f"There is a plan '{name}' already.", code="plan_exists")
        return made

    async def change_plan(self, name: str, change: Callable[[Limits], Limits]) -> Plan:
        """The plan with the limits that ``change`` makes of its own; they hold for its tenants within a second. What
        somebody else changes meanwhile is not lost."""
        for _ in range(_TRIES):
            old = await self.plan(name)
            new = Plan(name=name, limits=change(old.limits))
            check_limits(new.limits)
            if new == old or await self._store.plans.change(old, new):
                return new
        raise Conflict(f"The plan '{name}' is being changed by others; try again.", code="plan_changed")

    async def remove_plan(self, name: str) -> None:
        """Forgets a plan that no tenant is on; on the default one are all who name none."""
        on_it = [tenant.id for tenant in await self._store.tenants.all() if tenant.plan == name]
        if on_it:
            await self.plan(name)
            raise Conflict(
                f"Tenants are on the plan '{name}': {_few(on_it)}. Put them on another, or unset the plan's limits.",
                code="plan_in_use",
            )
        if not await self._store.plans.remove(name):
            await self.plan(name)

    async def reserved(self) -> float:
        """The sum of what is reserved of every shared worker; more than 1 cannot be had by all at once."""
        plans = {plan.name: plan for plan in await self.plans()}
        held = [terms_of(tenant, plans.get(tenant.plan), self._defaults) for tenant in await self.tenants()]
        return math.fsum(terms.reserved for terms in held if not terms.pool)

    async def usage(
        self, *, since: float, until: float, tenant: str | None = None, by_day: bool = False
    ) -> Sequence[UsageSum]:
        """What turns that ended in that time cost, of each tenant or of one."""
        return await self._store.usage.sums(since=since, until=until, tenant=tenant, by_day=by_day)

    async def _check(self, tenant: Tenant) -> None:
        check_name(tenant.name)
        check_limits(tenant.limits)
        if tenant.plan != DEFAULT_PLAN:
            await self.plan(tenant.plan)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
