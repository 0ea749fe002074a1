"""Administration of tenants and plans. Knows neither HTTP nor a terminal."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from axon.domain.audit import AuditEntry, new_entry
from axon.domain.billing.usage_sum import UsageSum
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import (
    DEFAULT_PLAN,
    Limits,
    Plan,
    Tenant,
    Terms,
    check_id,
    check_limits,
    check_name,
    terms_of,
)
from axon.errors import Conflict, NotFound
from axon.ports.store import Store
from axon.runtime.clock import Clock
from axon.tenants.facts import Facts, plan_record, tenant_record

_TRIES = 5


class Tenancy:
    """Operations of the admin API and the command line; each validates its input before it writes. ``actor`` is who
    the audit trail names."""

    def __init__(self, store: Store, clock: Clock, *, defaults: Terms | None = None) -> None:
        self._store, self._clock = store, clock
        self._defaults = defaults or Terms()

    async def tenants(self) -> Sequence[Tenant]:
        """All tenants, the oldest first."""
        return await self._store.tenants.all()

    async def tenant(self, tenant_id: str) -> Tenant:
        """Returns the tenant; raises ``NotFound``."""
        found = await self._store.tenants.get(tenant_id)
        if found is None:
            raise NotFound(f"There is no tenant '{tenant_id}'.", code="tenant_not_found", param="tenant")
        return found

    async def terms(self, tenant: Tenant) -> Terms:
        """The limits that apply to its requests."""
        return terms_of(tenant, await self._store.plans.get(tenant.plan), self._defaults)

    async def stored(self, tenant_id: str) -> Stored:
        """Amount stored for it now; its limits are ``stored_bytes`` and ``stored_objects`` of its terms."""
        return await self._store.storage.stored(tenant_id)

    async def create(
        self, tenant_id: str, *, name: str = "", plan: str = DEFAULT_PLAN, limits: Limits | None = None, actor: str
    ) -> Tenant:
        """Creates a tenant; raises ``Conflict`` when the id exists."""
        check_id(tenant_id)
        made = Tenant(id=tenant_id, name=name, plan=plan, limits=limits or Limits(), created_at=self._clock.now())
        await self._check(made)
        entry = self._entry(actor, "tenant", tenant_id, "add", after=tenant_record(made))
        return await self._store.tenants.add(made, entry=entry)

    async def change(
        self, tenant_id: str, change: Callable[[Tenant], Tenant], *, actor: str, action: str = "change"
    ) -> Tenant:
        """Applies ``change`` to the tenant by compare-and-set, so concurrent changes are not lost; returns the
        result."""
        for _ in range(_TRIES):
            old = await self.tenant(tenant_id)
            new = change(old)
            await self._check(new)
            if new == old:
                return new
            entry = self._entry(actor, "tenant", tenant_id, action, tenant_record(old), tenant_record(new))
            if await self._store.tenants.change(old, new, entry=entry):
                return new
        raise Conflict(f"The tenant '{tenant_id}' is being changed by others; try again.", code="tenant_changed")

    async def suspend(self, tenant_id: str, *, actor: str) -> Tenant:
        """Suspends the tenant: its keys are refused from now on. A suspended tenant keeps its first time."""
        now = self._clock.now()
        return await self.change(
            tenant_id, lambda old: replace(old, suspended_at=old.suspended_at or now), actor=actor, action="suspend"
        )

    async def resume(self, tenant_id: str, *, actor: str) -> Tenant:
        """Ends a suspension; keys that are still valid work again."""
        return await self.change(tenant_id, lambda old: replace(old, suspended_at=None), actor=actor, action="resume")

    async def remove(self, tenant_id: str, *, actor: str) -> None:
        """Removes a tenant without valid keys. Its data is kept under its id, which is never given again."""
        now = self._clock.now()
        good = [key.id for key in await self._store.keys.all(tenant=tenant_id) if key.valid(now)]
        if good:
            raise Conflict(
                f"The tenant '{tenant_id}' has keys that are good: {_few(good)}. Revoke them first.",
                code="tenant_has_keys",
            )
        entry = self._entry(actor, "tenant", tenant_id, "remove", tenant_record(await self.tenant(tenant_id)))
        if not await self._store.tenants.remove(tenant_id, at=now, entry=entry):
            await self.tenant(tenant_id)

    async def plans(self) -> Sequence[Plan]:
        """All plans, sorted by name."""
        return await self._store.plans.all()

    async def plan(self, name: str) -> Plan:
        """Returns the plan; raises ``NotFound``."""
        found = await self._store.plans.get(name)
        if found is None:
            raise NotFound(f"There is no plan '{name}'.", code="plan_not_found", param="plan")
        return found

    async def create_plan(self, name: str, limits: Limits, *, actor: str) -> Plan:
        """Creates a plan; raises ``Conflict`` when the name exists."""
        check_id(name)
        check_limits(limits)
        made = Plan(name=name, limits=limits)
        entry = self._entry(actor, "plan", name, "add", after=plan_record(made))
        if not await self._store.plans.add(made, entry=entry):
            raise Conflict(f"There is a plan '{name}' already.", code="plan_exists", param="id")
        return made

    async def change_plan(self, name: str, change: Callable[[Limits], Limits], *, actor: str) -> Plan:
        """Applies ``change`` to the plan's limits by compare-and-set, so concurrent changes are not lost. They apply
        to its tenants within a second."""
        for _ in range(_TRIES):
            old = await self.plan(name)
            new = Plan(name=name, limits=change(old.limits))
            check_limits(new.limits)
            entry = self._entry(actor, "plan", name, "change", plan_record(old), plan_record(new))
            if new == old or await self._store.plans.change(old, new, entry=entry):
                return new
        raise Conflict(f"The plan '{name}' is being changed by others; try again.", code="plan_changed")

    async def remove_plan(self, name: str, *, actor: str) -> None:
        """Removes a plan that no tenant uses; tenants that name none use the default plan."""
        on_it = [tenant.id for tenant in await self._store.tenants.all() if tenant.plan == name]
        if on_it:
            await self.plan(name)
            raise Conflict(
                f"Tenants are on the plan '{name}': {_few(on_it)}. Put them on another, or unset the plan's limits.",
                code="plan_in_use",
            )
        entry = self._entry(actor, "plan", name, "remove", plan_record(await self.plan(name)))
        if not await self._store.plans.remove(name, entry=entry):
            await self.plan(name)

    async def reserved(self) -> float:
        """Sum of all tenants' reserved fractions of the shared workers; beyond 1 not all can be granted at once."""
        plans = {plan.name: plan for plan in await self.plans()}
        held = [terms_of(tenant, plans.get(tenant.plan), self._defaults) for tenant in await self.tenants()]
        return math.fsum(terms.reserved for terms in held if not terms.pool)

    async def usage(
        self,
        *,
        since: float,
        until: float,
        tenant: str | None = None,
        by_day: bool = False,
        by_model: bool = False,
    ) -> Sequence[UsageSum]:
        """Usage and cost of the turns that ended from ``since`` to ``until``, per tenant or of one tenant."""
        return await self._store.usage.sums(since=since, until=until, tenant=tenant, by_day=by_day, by_model=by_model)

    def _entry(
        self, actor: str, kind: str, name: str, action: str, before: Facts | None = None, after: Facts | None = None
    ) -> AuditEntry:
        at = self._clock.now()
        return new_entry(at=at, actor=actor, kind=kind, name=name, action=action, before=before, after=after)

    async def _check(self, tenant: Tenant) -> None:
        check_name(tenant.name)
        check_limits(tenant.limits)
        if tenant.plan != DEFAULT_PLAN:
            await self.plan(tenant.plan)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
