"""The contract of leaders' terms: each is above all before it, whoever takes it."""

import asyncio

from tests.contracts.backends import StoreBackend


async def test_every_term_is_above_the_one_before(stores: StoreBackend) -> None:
    first, second = await stores.connect(), await stores.connect()
    taken = [await store.terms.take() for store in (first, second, second, first)]
    assert taken[0] >= 1
    assert taken == sorted(set(taken))


async def test_terms_that_are_taken_at_once_differ(stores: StoreBackend) -> None:
    first, second = await stores.connect(), await stores.connect()
    taken = await asyncio.gather(*(store.terms.take() for store in (first, second) * 4))
    assert len(set(taken)) == 8
