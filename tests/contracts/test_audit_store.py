"""The store's contract for the audit trail: an entry is there exactly if its change is, and pages have all of them."""

from dataclasses import replace

import pytest

from axon.domain.audit import AuditEntry, new_entry
from axon.domain.registry.model import Model
from axon.domain.tenants.tenant import Limits, Plan, Tenant
from axon.errors import Conflict
from axon.ports.store import Store
from tests.contracts.backends import StoreBackend
from tests.contracts.builders import make_key

MODEL = Model(name="small", created=1.0)


def make_entry(name: str, *, at: float = 5.0, **changes: str) -> AuditEntry:
    plain = {"actor": "k0000009", "kind": "tenant", "action": "change", **changes}
    return new_entry(at=at, name=name, before={"plan": "free"}, after={"plan": "größer"}, **plain)


async def names(store: Store, **wanted: str) -> list[str]:
    """The names of all entries that match, read one by one."""
    found: list[str] = []
    after, has_more = "", True
    while has_more:
        page = await store.audit.page(limit=1, after=after, **wanted)
        assert page is not None
        found += [entry.name for entry in page.entries]
        after, has_more = (page.entries[-1].id if page.entries else after), page.has_more
    return found


async def test_an_entry_comes_back_as_it_was_written_at_every_gateway(stores: StoreBackend, store: Store) -> None:
    entry = make_entry("acme")
    await store.audit.add(entry)
    page = await (await stores.connect()).audit.page(limit=9)
    assert page is not None
    assert (list(page.entries), page.has_more) == ([entry], False)


async def test_entries_and_changes_of_the_registry_are_one_trail_the_newest_first(store: Store) -> None:
    for at, name in ((1.0, "a"), (3.0, "b"), (3.0, "c"), (5.0, "d")):
        await store.audit.add(make_entry(name, at=at))
    for at, name in ((2.0, "m1"), (3.0, "m2"), (3.0, "m3"), (6.0, "m4")):
        await store.registry.write(None, replace(MODEL, name=name), actor="cli", at=at)
    read = await names(store)
    assert (read[:2], read[4:]) == (["m4", "d"], ["m3", "m2", "m1", "a"])
    assert set(read[2:4]) == {"b", "c"}
    page = await store.audit.page(limit=9)
    assert page is not None
    assert [entry.name for entry in page.entries] == read


async def test_the_trail_is_filtered_by_kind_and_by_text_of_any_case(store: Store) -> None:
    await store.audit.add(make_entry("acme"))
    await store.audit.add(make_entry("k0000001", kind="key", action="revoke", at=6.0))
    await store.audit.add(make_entry("100%", actor="Anna", at=7.0))
    await store.registry.write(None, MODEL, actor="cli", at=8.0)
    assert await names(store, kind="key") == ["k0000001"]
    assert await names(store, text="ACME") == ["acme"]
    assert await names(store, text="anna") == ["100%"]
    assert await names(store, text="revoke") == ["k0000001"]
    assert await names(store, text='"name":"small"') == ["small"]
    assert await names(store, text="100%") == ["100%"]
    assert await names(store, text="1_0") == []
    assert await names(store, kind="key", text="acme") == []


async def test_text_in_other_letters_than_ascii_is_found(store: Store) -> None:
    await store.audit.add(make_entry("acme"))
    await store.audit.add(make_entry("other", actor="Özlem", at=6.0))
    assert await names(store, text="GRößer") == ["other", "acme"]
    assert await names(store, text="Özlem") == ["other"]


@pytest.mark.parametrize("after", ["aud_unknown", "17", "9" * 40, "a\x00b"])
async def test_after_an_entry_that_is_not_there_nothing_is_read(store: Store, after: str) -> None:
    await store.audit.add(make_entry("acme"))
    assert await store.audit.page(limit=9, after=after) is None
    page = await store.audit.page(limit=9, text="a\x00b")
    assert page is None or list(page.entries) == []


async def test_large_entries_come_in_shorter_pages_and_all_of_them_come(store: Store) -> None:
    for number in range(5):
        await store.registry.write(None, replace(MODEL, name=f"m{number}", licence="x" * 1_500_000), actor="t", at=5.0)
    read: list[str] = []
    after, has_more = "", True
    while has_more:
        page = await store.audit.page(limit=100, after=after)
        assert page is not None
        assert sum(len(each.after) for each in page.entries) < 5_000_000
        read += [each.name for each in page.entries]
        after, has_more = page.entries[-1].id, page.has_more
    assert read == ["m4", "m3", "m2", "m1", "m0"]


async def test_a_change_and_its_entry_are_written_together(store: Store) -> None:
    tenant = await store.tenants.add(Tenant(id="acme"), entry=make_entry("add acme", at=1.0))
    changed = replace(tenant, name="Acme")
    assert await store.tenants.change(tenant, changed, entry=make_entry("change acme", at=2.0))
    assert await store.tenants.remove("acme", at=9.0, entry=make_entry("remove acme", at=3.0))
    plan = Plan(name="pro", limits=Limits())
    assert await store.plans.add(plan, entry=make_entry("add pro", at=4.0))
    more = replace(plan, limits=Limits(weight=2.0))
    assert await store.plans.change(plan, more, entry=make_entry("change pro", at=5.0))
    assert await store.plans.remove("pro", entry=make_entry("remove pro", at=6.0))
    old = make_key()
    await store.keys.add(old, entry=make_entry("add key", at=7.0))
    new = replace(old, id="k0000002", previous=old.id)
    assert await store.keys.rotate(new, until=900.0, entry=make_entry("rotate key", at=8.0))
    assert await store.keys.revoke(new.id, at=300.0, entry=make_entry("revoke key", at=9.0))
    expected = ["add acme", "change acme", "remove acme", "add pro", "change pro", "remove pro"]
    assert (await names(store))[::-1] == [*expected, "add key", "rotate key", "revoke key"]


async def test_what_changes_nothing_has_no_entry(store: Store) -> None:
    tenant = await store.tenants.add(Tenant(id="acme"))
    plan = Plan(name="pro", limits=Limits())
    assert await store.plans.add(plan)
    await store.keys.add(make_key())
    assert await store.keys.revoke(make_key().id, at=1.0)
    never = make_entry("never")
    for twice in (store.tenants.add(Tenant(id="acme"), entry=never), store.keys.add(make_key(), entry=never)):
        with pytest.raises(Conflict):
            await twice
    lost = replace(tenant, name="somebody was faster")
    assert not await store.tenants.change(lost, replace(lost, name="b"), entry=never)
    assert not await store.tenants.remove("nobody", at=1.0, entry=never)
    assert not await store.plans.add(plan, entry=never)
    assert not await store.plans.change(Plan(name="pro", limits=Limits(weight=9.0)), plan, entry=never)
    assert not await store.plans.remove("none", entry=never)
    assert not await store.keys.rotate(replace(make_key(), id="k2", previous="none"), until=9.0, entry=never)
    assert await store.keys.revoke(make_key().id, at=2.0, entry=never), "it was revoked before"
    assert not await store.keys.revoke("nothing0", at=2.0, entry=never)
    assert await names(store) == []
