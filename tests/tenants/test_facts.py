"""What is shown of tenants, plans and keys: whole seconds, set limits only, and never a secret."""

from axon.domain.tenants.key import Key, Scope
from axon.domain.tenants.tenant import Limits, Plan, Tenant, Terms
from axon.tenants.facts import LIMITS, key_facts, limit_facts, plan_facts, tenant_facts


def test_a_tenant_is_shown_with_the_limits_of_its_own_alone() -> None:
    tenant = Tenant(id="acme", name="Acme", plan="pro", limits=Limits(concurrent=2), created_at=1.9, suspended_at=5.5)
    shown = tenant_facts(tenant)
    assert shown["limits"] == {"concurrent": 2}
    assert (shown["created_at"], shown["suspended_at"], shown["status"]) == (1, 5, "suspended")
    assert tenant_facts(Tenant(id="acme"))["status"] == "active"


def test_a_plan_is_shown_by_its_name() -> None:
    assert plan_facts(Plan(name="pro", limits=Limits(weight=4.0))) == {
        "id": "pro",
        "object": "plan",
        "limits": {"weight": 4.0},
    }


def test_the_limits_that_hold_in_the_end_are_all_shown_but_for_those_without_a_value() -> None:
    held = Terms()
    assert list(limit_facts(held)) == [name for name in LIMITS if getattr(held, name) is not None]


def test_a_key_is_shown_without_its_secret() -> None:
    key = Key(id="k1", tenant="acme", digest=b"secret", scopes=frozenset({Scope.READ}), created_at=1.9)
    shown = key_facts(key, now=2.0)
    assert shown["scopes"] == [Scope.READ]
    assert (shown["created_at"], shown["expires_at"], shown["previous"]) == (1, None, None)
    assert not {"digest", "secret", "key"} & set(shown)
