"""A tenant's limits hold for the whole fleet: exactly, whichever gateway a request meets."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
import pytest

from tests.fleet.fleet import Fleet
from tests.fleet.member import Member

pytestmark = pytest.mark.services

NUM_ASKS, LIMIT = 200, 50
ASK = {"model": "echo", "input": "It waits until somebody goes on.", "background": True}


@contextmanager
def stopped(members: Sequence[Member]) -> Iterator[None]:
    for member in members:
        member.pause()
    try:
        yield
    finally:
        for member in members:
            member.resume()


def test_two_hundred_asks_at_once_through_two_gateways_are_exactly_as_many_turns_as_may_be(fleet: Fleet) -> None:
    fleet.axon("tenants", "create", "bounded", "--limit", f"concurrent={LIMIT}")
    key = json.loads(fleet.axon("keys", "create", "--tenant", "bounded", "--json"))["key"]

    async def story() -> None:
        headers = {"Authorization": f"Bearer {key}"}
        limits = httpx.Limits(max_connections=NUM_ASKS)
        async with httpx.AsyncClient(headers=headers, timeout=60, limits=limits) as http:
            urls = [f"{member.url}/v1/responses" for member in fleet.gateways]

            async def ask(number: int) -> httpx.Response:
                return await http.post(urls[number % len(urls)], json=ASK)

            with stopped(fleet.workers):  # nobody's turn ends before the last one has asked
                replies = await asyncio.gather(*map(ask, range(NUM_ASKS)))
            accepted = [reply.json()["id"] for reply in replies if reply.status_code == 200]
            await asyncio.gather(*(http.post(f"{urls[0]}/{each}/cancel") for each in accepted))
            codes = Counter((reply.json().get("error") or {}).get("code") for reply in replies)
            assert codes == {None: LIMIT, "concurrency_limit": NUM_ASKS - LIMIT}
            refused = next(reply for reply in replies if reply.status_code == 429)
            assert int(refused.headers["retry-after-ms"]) > 0

    asyncio.run(story())
