"""The real services over TLS: who is trusted, what is said of those who are not, and where credentials come from."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from axon.adapters.live.redis.live import RedisLive
from axon.adapters.queue.rabbitmq import RabbitQueue
from axon.adapters.service_address import ServiceAddress
from axon.adapters.store.postgres import PostgresStore
from axon.adapters.tls_errors import OTHER_NAME, UNKNOWN_CA, UNSAID
from axon.errors import DependencyDown, ServiceRefuses
from axon.runtime.url_file import UrlFile
from tests.contracts import postgres_backend
from tests.services import rabbitmq, redis
from tests.services.certificates import Authority, shared_authority
from tests.services.require import require
from tests.services.rotation import rotating

pytestmark = pytest.mark.services


async def _queue() -> str:
    return (await asyncio.to_thread(rabbitmq.shared_server)).tls_url


async def _live(*, cluster: bool = False) -> str:
    require("redis-server")
    return (await asyncio.to_thread(redis.shared_server, cluster=cluster, tls=True)).tls_url


async def _cluster() -> str:
    return await _live(cluster=True)


async def _store() -> str:
    require("postgres", "initdb")
    server = await asyncio.to_thread(postgres_backend.shared_server, tls=True)
    return server.database_url(postgres_backend.TEMPLATE).replace("127.0.0.1", "localhost")


SERVICES: dict[str, Callable[[], Awaitable[str]]] = {
    "queue": _queue,
    "live": _live,
    "live in a cluster": _cluster,
    "store": _store,
}


@asynccontextmanager
async def opened(address: ServiceAddress) -> AsyncIterator[RabbitQueue | RedisLive | PostgresStore]:
    """What the URL's scheme stands for."""
    service: RabbitQueue | RedisLive | PostgresStore
    if address.url.startswith("amqp"):
        service = RabbitQueue(address, rabbitmq.new_prefix(), timeout_s=30.0)
    elif address.url.startswith("rediss"):
        service = RedisLive(address, retention_s=60.0, prefix="test-tls", deadline_s=30.0)
    else:
        service = PostgresStore(address, timeout_s=30.0)
    await service.open()
    try:
        yield service
    finally:
        await service.aclose()


async def refusal(address: ServiceAddress) -> str:
    with pytest.raises(ServiceRefuses) as raised:
        async with opened(address):
            pass
    return raised.value.message


@pytest.mark.parametrize("name", SERVICES)
async def test_a_certificate_for_another_name_is_refused(name: str) -> None:
    wrong = "127.0.0.2" if "cluster" in name else "127.0.0.1"
    url = (await SERVICES[name]()).replace("localhost", wrong)
    said = await refusal(ServiceAddress(url=url, ca_file=shared_authority().file))
    assert said.endswith(f" {OTHER_NAME}")
    assert said.startswith(f"The {'live service' if name.startswith('live') else name} at {wrong}:")


@pytest.mark.parametrize("name", SERVICES)
async def test_a_certificate_of_an_unknown_ca_is_refused(name: str, tmp_path: Path) -> None:
    url = await SERVICES[name]()
    said = await refusal(ServiceAddress(url=url, ca_file=Authority(tmp_path).file))
    assert said.endswith(f" {UNSAID if name == 'store' else UNKNOWN_CA}"), "PostgreSQL's library does not say why"


@pytest.mark.parametrize("name", ["queue", "live", "live in a cluster"])
async def test_without_a_ca_file_those_of_the_system_are_asked(name: str) -> None:
    """Who do not know the tests' own."""
    assert (await refusal(ServiceAddress(url=await SERVICES[name]()))).endswith(f" {UNKNOWN_CA}")


async def test_a_store_that_must_be_trusted_and_cannot_says_what_to_set() -> None:
    said = await refusal(ServiceAddress(url=f"{await _store()}?sslmode=verify-full&sslrootcert=/nowhere/ca.crt"))
    assert "cannot be trusted without /nowhere/ca.crt: set service_ca_file to a file" in said


async def test_a_store_that_wants_tls_says_so() -> None:
    url = (await _store()).replace("axon@", "somebody:secret@")
    said = await refusal(ServiceAddress(url=f"{url}?sslmode=disable"))
    assert said.endswith("wants TLS: write sslmode=verify-full in its URL, or set service_ca_file.")
    assert "secret" not in said


async def test_with_a_ca_file_a_store_without_tls_is_refused() -> None:
    """Nobody on the way can talk us out of it."""
    require("postgres", "initdb")
    server = await asyncio.to_thread(postgres_backend.shared_server)
    said = await refusal(ServiceAddress(url=server.url, ca_file=shared_authority().file))
    assert said.endswith("does not speak TLS: turn it on there, or write sslmode=disable in its URL.")


@pytest.mark.parametrize("name", ["queue", "live", "store"])
async def test_a_new_connection_is_made_as_the_file_says_by_then(name: str, tmp_path: Path) -> None:
    """A user goes, with its connections, and the next call is another user's. While the file names nobody, the service
    counts as down."""
    for each in ("queue", "live", "store"):
        await SERVICES[each]()  # starts it
    database = postgres_backend.shared_server(tls=True).database_url(postgres_backend.TEMPLATE)
    users = await asyncio.to_thread(
        rotating,
        rabbitmq.shared_server(),
        redis.shared_server(cluster=False, tls=True),
        postgres_backend.shared_server(tls=True),
        database,
    )
    service, file = users[name], tmp_path / "url"
    await asyncio.to_thread(service.make, "first")
    file.write_text(service.url("first"))
    written = UrlFile(setting=name, path=file)
    address = ServiceAddress(url=service.url("first"), file=written, ca_file=shared_authority().file)
    async with opened(address) as held:
        await ask(held)
        await asyncio.to_thread(service.make, "second")
        file.write_text(f"{service.url('second')}\n")
        await asyncio.to_thread(service.remove, "first")
        await ask_again(held)
        file.write_text("")
        await asyncio.to_thread(service.remove, "second")
        with pytest.raises(DependencyDown):
            await ask_again(held)
        await asyncio.to_thread(service.make, "third")
        file.write_text(service.url("third"))
        await ask_again(held)
    await asyncio.to_thread(service.remove, "third")


async def ask(service: RabbitQueue | RedisLive | PostgresStore) -> None:
    """Any call that needs an answer."""
    if isinstance(service, RabbitQueue):
        await service.depths(["nowhere"])
        await service.declare(["somewhere"])
        await service.publish("somewhere", b"job")
    elif isinstance(service, RedisLive):
        await service.cache.get("nothing")
    else:
        await service.ping()


async def ask_again(service: RabbitQueue | RedisLive | PostgresStore, attempts: int = 4) -> None:
    """A call may still meet the connection that is gone; the driver notices by it."""
    for left in reversed(range(attempts)):
        try:
            await ask(service)
            return
        except DependencyDown:
            if not left:
                raise
