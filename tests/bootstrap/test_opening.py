"""What a start says of the real servers when its settings are wrong."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from axon.adapters.backup.database import is_sqlite
from axon.bootstrap.services import open_live, open_services, open_store, store_address
from axon.errors import DependencyDown, Misconfigured, ServiceRefuses
from axon.runtime.clock import FakeClock, SystemClock
from axon.runtime.service_url import scheme_of
from axon.settings import Settings
from tests.contracts import postgres_backend
from tests.runtime.test_service_url import SECRET, WRONG
from tests.services import rabbitmq, redis
from tests.services.process import free_port
from tests.services.require import require


async def told(refused: bool = False, **urls: str) -> str:
    """What is said of the one service that cannot be opened. Whoever refuses is not waited for."""
    settings = Settings(**urls)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        with pytest.raises(DependencyDown) as raised:
            await _open(settings, stack)
    assert isinstance(raised.value, ServiceRefuses) == refused
    return raised.value.message


async def _open(settings: Settings, stack: AsyncExitStack) -> None:
    if not settings.queue.startswith("memory:"):
        await open_services(settings, FakeClock(), stack)
    elif not settings.live.startswith("memory:"):
        await open_live(settings, FakeClock(), stack)
    else:
        await open_store(settings, stack)


@pytest.mark.services
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("amqp://guest:wr0ng@{}/", "refuses the user 'guest': wrong user or password."),
        ("amqp://guest:guest@{}/nowhere", "has no vhost 'nowhere', or none that the user 'guest' may use."),
    ],
)
async def test_a_queue_that_refuses_says_whom_or_what(tmp_path: Path, url: str, reason: str) -> None:
    require("redis-server")
    server = await asyncio.to_thread(rabbitmq.shared_server)
    place = f"127.0.0.1:{server.port}"
    live = redis.shared_server(cluster=False).url
    said = await told(refused=True, queue=url.format(place), live=live, store=f"sqlite:///{tmp_path}/axon.db")
    assert said == f"The queue at {place} {reason}"


@pytest.mark.services
async def test_a_closed_port_of_the_queue_is_named(tmp_path: Path) -> None:
    require("redis-server")
    live, port = redis.shared_server(cluster=False).url, free_port()
    said = await told(queue=f"amqp://guest:guest@127.0.0.1:{port}/", live=live, store=f"sqlite:///{tmp_path}/axon.db")
    assert said == f"The queue at 127.0.0.1:{port} does not answer: connection refused."


@pytest.mark.services
async def test_a_database_that_redis_does_not_have_is_named() -> None:
    require("redis-server")
    port = redis.shared_server(cluster=False).port
    assert (
        await told(refused=True, live=f"redis://127.0.0.1:{port}/77")
        == f"The live service at 127.0.0.1:{port} has no database 77."
    )


@pytest.mark.services
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://nodb:pw@{}/postgres", "has no role 'nodb'."),
        ("postgresql://axon@{}/nowhere", "has no database 'nowhere'."),
    ],
)
async def test_a_role_or_database_that_postgresql_does_not_have_is_named(url: str, reason: str) -> None:
    require("postgres", "initdb")
    server = await asyncio.to_thread(postgres_backend.shared_server)
    place = f"127.0.0.1:{server.port}"
    assert await told(refused=True, store=url.format(place)) == f"The store at {place} {reason}"


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
async def test_a_closed_port_of_the_live_service_is_named(scheme: str) -> None:
    port = free_port()
    said = await told(live=f"{scheme}://:s3cret@127.0.0.1:{port}")
    assert said == f"The live service at 127.0.0.1:{port} does not answer: connection refused."


async def test_a_closed_port_of_the_store_is_named() -> None:
    port = free_port()
    said = await told(store=f"postgresql://axon:s3cret@127.0.0.1:{port}/x")
    assert said == f"The store at 127.0.0.1:{port} does not answer: connection refused."


async def test_a_store_whose_file_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = await told(store=f"sqlite:///{tmp_path}/file/axon.db")
    assert said.startswith(f"The store at {tmp_path}/file/axon.db cannot be used: ")


@pytest.mark.parametrize("port", ["abc", "0", "99999", "1,abc"])
async def test_a_port_that_is_none_is_a_wrong_setting(port: str) -> None:
    hosts = ",".join(f"127.0.0.1:{one}" for one in port.split(","))
    async with AsyncExitStack() as stack:
        with pytest.raises(Misconfigured, match="its port is no number") as raised:
            await open_store(Settings(store=f"postgresql://{hosts}/x"), stack)
    assert port not in raised.value.message.replace("65535", "")


async def test_of_a_password_that_is_taken_for_a_port_of_redis_nothing_is_said() -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(Misconfigured, match="its port is no number") as raised:
            await open_live(Settings(live="redis://axon:s3c/ret@127.0.0.1"), FakeClock(), stack)
    assert "s3c" not in raised.value.message


@pytest.mark.parametrize("url", [url for url in WRONG if not scheme_of(url)])
async def test_no_error_of_a_service_quotes_what_may_be_its_password(url: str, tmp_path: Path) -> None:
    settings = Settings(store=url, live=url, data_dir=tmp_path)
    async with AsyncExitStack() as stack:
        with pytest.raises(Misconfigured) as of_store:
            await open_store(settings, stack)
        with pytest.raises(Misconfigured) as of_live:
            await open_live(settings, SystemClock(), stack)
    with pytest.raises(Misconfigured) as of_backup:
        is_sqlite(store_address(settings))
    assert all(SECRET not in str(refused.value) for refused in (of_store, of_live, of_backup))


@pytest.mark.parametrize("url", [f"redis://u:{SECRET}\u2100@h", f"redis://[{SECRET}]", f"redis://u:{SECRET}@[h"])
async def test_a_live_service_with_a_damaged_url_is_refused_without_it(url: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(Misconfigured) as refused:
            await open_live(Settings(live=url, data_dir=tmp_path), SystemClock(), stack)
    assert SECRET not in str(refused.value)
