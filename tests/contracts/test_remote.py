"""What only ports of another process have: a socket, errors that travel, a hub that can be gone."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.remote import link as links
from axon.adapters.remote import server as servers
from axon.adapters.remote.frames import frame
from axon.adapters.remote.methods import PORTS, methods_of
from axon.adapters.remote.ports import RemotePorts
from axon.domain.log.chunk import Chunk, Token
from axon.domain.tenants.tenant import Tenant
from axon.domain.turn import opened
from axon.domain.wire import decode
from axon.errors import AxonError, Conflict, DependencyDown
from axon.ports.live import stream_channel
from axon.runtime.clock import SystemClock
from axon.runtime.framing import Framer
from tests.contracts.builders import claim_epoch, make_job
from tests.contracts.remote_backend import Remote, until

WAIT_S = 10.0


@pytest.fixture
async def remote(tmp_path: Path, no_task_is_left: None) -> AsyncIterator[Remote]:
    async with AsyncExitStack() as closing:
        yield await Remote(tmp_path, closing, retention_s=1.0).open()


async def test_only_its_user_can_open_the_socket_and_it_goes_with_the_server(remote: Remote) -> None:
    assert stat.S_IMODE(remote.path.stat().st_mode) == 0o600
    await remote.server.aclose()
    assert not remote.path.exists()


async def test_a_data_folder_may_have_a_long_path(tmp_path: Path, no_task_is_left: None) -> None:
    folder = tmp_path / ("long-" * 20) / ("longer-" * 20)
    folder.mkdir(parents=True)
    async with AsyncExitStack() as closing:
        remote = await Remote(folder, closing, retention_s=1.0).open()
        assert await remote.live.cache.put("key", b"value", ttl_s=1.0)
        assert remote.path.exists()


async def test_a_socket_that_a_killed_server_left_is_no_hindrance(tmp_path: Path, no_task_is_left: None) -> None:
    (tmp_path / "fronts.sock").touch()
    async with AsyncExitStack() as closing:
        remote = await Remote(tmp_path, closing, retention_s=1.0).open()
        assert await remote.live.cache.get("key") is None


async def test_an_error_arrives_as_the_hub_raised_it(remote: Remote) -> None:
    store = (await remote.front()).store
    await store.tenants.add(Tenant(id="acme"))
    with pytest.raises(Conflict):
        await store.tenants.add(Tenant(id="acme"))
    with pytest.raises(DependencyDown) as failure:
        await (await remote.front()).queue.publish("undeclared", b"job")
    assert failure.value.code == "lane_unknown"


async def test_a_defect_of_the_hub_is_an_error_of_the_call_and_of_no_other(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(key: str) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(remote.twins.cache, "get", fail)
    front = await remote.front()  # methods are looked up when a front connects
    with pytest.raises(AxonError):
        await front.live.cache.get("key")
    assert await front.live.crowds.count("crowd") == 0


async def test_a_record_that_cannot_be_sent_or_understood_is_refused_and_the_connection_stays(remote: Remote) -> None:
    turns = (await remote.front()).store.turns
    for wrong in (
        replace(opened(make_job("bad_text")), message="\ud800"),
        replace(opened(make_job("bad_column")), opened_at=None),  # type: ignore[arg-type]
    ):
        with pytest.raises(DependencyDown) as refusal:
            await turns.apply([wrong])
        assert refusal.value.code == "record_refused"
        assert await turns.get(wrong.id) is None


async def test_calls_of_a_front_whose_hub_is_gone_fail_at_once(remote: Remote) -> None:
    front = await remote.front()
    async with front.live.wakeups.listen("channel"):
        assert await front.live.cache.get("key") is None
        await remote.server.aclose()
        with pytest.raises(DependencyDown):
            await front.live.cache.get("key")
    with pytest.raises(DependencyDown):
        await RemotePorts(remote.path, SystemClock()).open()


async def test_a_call_that_is_never_answered_ends_by_its_deadline(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_CALL_S", 0.05)
    monkeypatch.setattr(links, "_SWEEP_S", 0.01)
    release = asyncio.Event()

    async def wait(turns: object) -> None:
        await release.wait()

    monkeypatch.setattr(remote.journal_twin, "append", wait)
    front = await remote.front()
    with pytest.raises(DependencyDown, match=r"journal\.append"):
        await front.journal.append([])
    release.set()


async def test_a_notification_of_the_log_has_the_chunk_in_it(remote: Remote) -> None:
    log = remote.live.log
    await log.open("job", b"body", reader_ttl_s=None)
    epoch = await claim_epoch(log, "job", "worker", over=0)
    chunk = Chunk(first=1, epoch=epoch, tokens=(Token(0, 7, "seven"),))
    async with remote.live.wakeups.listen(stream_channel("job")) as listener:
        await log.append([("job", chunk)])
        payload = await listener.next(WAIT_S)
    assert payload is not None
    assert decode(Chunk, payload) == chunk


def closed(*_: object) -> object:
    """Every use of a transport of uvloop's that is closed, before anybody has been told."""
    raise RuntimeError("unable to perform operation on <UnixTransport closed=True>; the handler is closed")


async def test_who_notifies_does_not_fail_for_a_front_that_has_just_died(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await asyncio.open_unix_connection(str(remote.path))
    writer.write(frame(1, "listen", "channel"))
    await until(lambda: remote.twins.wakeups.is_heard("channel"))
    served = list(remote.server._connections.values())[-1]
    with monkeypatch.context() as dead:
        for use in ("is_closing", "get_write_buffer_size", "write"):
            dead.setattr(served.transport, use, closed)
        await remote.twins.wakeups.notify("channel", b"payload")
    await remote.twins.wakeups.notify("channel", b"later")
    assert b"later" in await asyncio.wait_for(reader.read(1 << 16), WAIT_S)
    writer.transport.abort()


async def test_a_front_that_reads_nothing_costs_the_hub_a_bounded_memory(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_MAX_UNSENT_BYTES", 1 << 20)
    reader, writer = await asyncio.open_unix_connection(str(remote.path), limit=1)
    writer.write(frame(1, "listen", "channel"))
    await writer.drain()
    await until(lambda: remote.twins.wakeups.is_heard("channel"))
    for _ in range(100):
        await remote.twins.wakeups.notify("channel", bytes(1 << 16))
        await asyncio.sleep(0)
    assert remote.server.num_unsent_bytes < 2 << 20
    writer.transport.abort()
    assert reader is not None


async def test_what_is_no_frame_ends_that_connection_alone(remote: Remote) -> None:
    reader, writer = await asyncio.open_unix_connection(str(remote.path))
    writer.write(frame(1, "no.such_method", ()))
    async with asyncio.timeout(WAIT_S):
        assert await reader.read() == b""
    writer.close()
    assert await remote.live.cache.get("key") is None


def test_frames_may_be_cut_anywhere() -> None:
    frames, data = Framer(), frame(1, "a", b"one") + frame(2, "b", b"two")
    bodies = [body for at in range(len(data)) for body in frames.feed(data[at : at + 1])]
    assert bodies == [frame(1, "a", b"one")[4:], frame(2, "b", b"two")[4:]]
    with pytest.raises(ValueError, match="over the limit"):
        Framer().feed(b"\xff\xff\xff\xff")


def test_every_coroutine_of_every_port_is_served_by_its_own_name() -> None:
    names = [each.name for port in PORTS for each in methods_of(port)]
    assert len(names) == len(set(names))
    assert {"log.read", "queue.publish", "journal.append", "turns.get", "store.ping"} <= set(names)
    assert not {"wakeups.listen", "leases.for_thread"} & set(names)
