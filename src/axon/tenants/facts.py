"""Tenants, plans, keys and usage as the admin API and the command line show them. Knows neither of the two."""

import json
from dataclasses import fields

from axon.domain.audit import AuditEntry
from axon.domain.billing.usage_sum import UsageSum
from axon.domain.tenants.key import Key
from axon.domain.tenants.tenant import Limits, Plan, Tenant, Terms

Facts = dict[str, object]
LIMITS = tuple(each.name for each in fields(Limits))
"""The names of all limits."""


def tenant_facts(tenant: Tenant) -> Facts:
    return {
        "id": tenant.id,
        "object": "tenant",
        "name": tenant.name,
        "status": tenant_status(tenant),
        "plan": tenant.plan,
        "limits": limit_facts(tenant.limits),
        "place": tenant.place,
        "created_at": _second(tenant.created_at),
        "suspended_at": _second(tenant.suspended_at),
    }


def tenant_status(tenant: Tenant) -> str:
    return "active" if tenant.suspended_at is None else "suspended"


def plan_facts(plan: Plan) -> Facts:
    return {"id": plan.name, "object": "plan", "limits": limit_facts(plan.limits)}


def key_facts(key: Key, now: float) -> Facts:
    """The JSON of a key, without its secret."""
    return {
        "id": key.id,
        "object": "api_key",
        "tenant": key.tenant,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "status": key.state(now),
        "created_at": _second(key.created_at),
        "expires_at": _second(key.expires_at),
        "revoked_at": _second(key.revoked_at),
        "last_used_at": _second(key.last_used_at),
        "previous": key.previous or None,
    }


def tenant_record(tenant: Tenant) -> Facts:
    """A tenant as the audit trail keeps it: what can be changed."""
    facts = tenant_facts(tenant)
    return {name: facts[name] for name in ("name", "status", "plan", "limits")}


def plan_record(plan: Plan) -> Facts:
    """A plan as the audit trail keeps it."""
    return {"limits": limit_facts(plan.limits)}


def key_record(key: Key, now: float) -> Facts:
    """A key as the audit trail keeps it, without its secret."""
    facts = key_facts(key, now)
    return {name: facts[name] for name in ("tenant", "name", "scopes", "status", "expires_at", "previous")}


def audit_facts(entry: AuditEntry) -> Facts:
    """The JSON of an entry of the audit trail."""
    return {
        "id": entry.id,
        "object": "audit.entry",
        "at": _second(entry.at),
        "actor": entry.actor,
        "kind": entry.kind,
        "name": entry.name,
        "action": entry.action,
        "before": json.loads(entry.before) if entry.before else None,
        "after": json.loads(entry.after) if entry.after else None,
    }


def usage_facts(spent: UsageSum) -> Facts:
    """The JSON of a tenant's usage, of one day or model or of all."""
    return {
        "object": "usage",
        "tenant": spent.tenant,
        "day": spent.day or None,
        "model": spent.model or None,
        "turns": spent.num_turns,
        "prompt_tokens": spent.usage.prompt_tokens,
        "cached_tokens": spent.usage.cached_tokens,
        "output_tokens": spent.usage.output_tokens,
        "total_tokens": spent.usage.total_tokens,
        "costs": [amount.shown() for amount in spent.costs],
        "replicas": spent.replicas.shown(),
    }


def limit_facts(limits: Limits | Terms) -> Facts:
    """The limits that are set, by name: those of a tenant or a plan, or all that hold in the end."""
    values = {name: getattr(limits, name) for name in LIMITS}
    return {name: value for name, value in values.items() if value is not None}


def _second(at: float | None) -> int | None:
    """A time in whole seconds, as OpenAI's API has them."""
    return None if at is None else int(at)
