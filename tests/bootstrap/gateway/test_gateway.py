"""A gateway's beginning and end: the secret it needs, and a close that waits for no service for ever."""

import asyncio
from pathlib import Path
from typing import Any, cast
from unittest.mock import AsyncMock, Mock, patch

import pytest
import structlog
from uvicorn.server import ServerState

from axon.bootstrap.gateway import gateway
from axon.bootstrap.gateway.gateway import Answering
from axon.bootstrap.services import load_pepper, require_pepper
from axon.errors import Misconfigured
from axon.settings import Settings


class Hung:
    """A follower whose wakeups nobody takes."""

    async def end(self) -> None:
        await asyncio.Event().wait()


class Http:
    """A server that ends when it must."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.should_exit = False
        self.server_state = ServerState()

    async def serve(self, sockets: object) -> None:
        self.server_state.tasks.add(cast("Any", "a request"))
        await self.ended.wait()

    @property
    def force_exit(self) -> bool:
        return self.ended.is_set()

    @force_exit.setter
    def force_exit(self, is_forced: bool) -> None:
        self.ended.set()


async def test_a_close_that_can_wake_nobody_ends_in_its_time() -> None:
    http = Http()
    nothing = cast("Any", None)
    answering = Answering(
        name="gateway-1",
        http=cast("Any", http),
        registry=nothing,
        observing=nothing,
        offers=nothing,
        follower=cast("Any", Hung()),
        last_use=nothing,
        revoked_keys=nothing,
        grammars=nothing,
        batches=nothing,
        listener=nothing,
        ready=nothing,
    )
    with patch.object(gateway, "_CLOSE_S", 0.01):
        await asyncio.wait_for(answering.close(), 60)
    assert http.force_exit


class Grpc:
    """A gRPC server with a call that ends when it must."""

    num_calls = 1

    def __init__(self) -> None:
        self.graces_s: list[float] = []

    async def stop(self, grace_s: float) -> None:
        self.graces_s.append(grace_s)
        await asyncio.sleep(grace_s)


async def test_a_close_cuts_off_the_calls_of_grpc_that_do_not_end() -> None:
    http, grpc, nothing = Http(), Grpc(), cast("Any", None)
    http.ended.set()
    answering = Answering(
        name="gateway-1",
        http=cast("Any", http),
        registry=nothing,
        observing=nothing,
        offers=nothing,
        follower=cast("Any", Mock(end=AsyncMock())),
        last_use=nothing,
        revoked_keys=nothing,
        grammars=nothing,
        batches=nothing,
        grpc=cast("Any", grpc),
        listener=nothing,
        ready=nothing,
    )
    assert answering.num_requests == 1
    with patch.object(gateway, "_CLOSE_S", 0.01):
        await asyncio.wait_for(answering.close(), 60)
    assert grpc.graces_s[-1] in (0.0, 0.01)


async def test_a_gateway_that_ends_logs_how_many_requests_it_waits_for_and_that_it_stopped() -> None:
    http, last_use, nothing = Http(), Mock(run=asyncio.Event().wait), cast("Any", None)
    revoked_keys = Mock(run=asyncio.Event().wait)
    answering = Answering(
        name="gateway-1",
        http=cast("Any", http),
        registry=nothing,
        observing=nothing,
        offers=nothing,
        follower=nothing,
        last_use=last_use,
        revoked_keys=revoked_keys,
        grammars=Mock(warm=asyncio.Event().wait),
        batches=nothing,
        listener=nothing,
        ready=nothing,
    )
    with structlog.testing.capture_logs() as lines:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(answering.run())
            await asyncio.sleep(0)
            tasks.create_task(answering.drain())
            await asyncio.sleep(0)
            http.ended.set()
    assert lines == [
        {"event": "gateway.draining", "requests": 1, "log_level": "info"},
        {"event": "gateway.stopped", "log_level": "info"},
    ]


def test_a_gateway_of_several_makes_no_secret_of_its_own(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    with pytest.raises(Misconfigured, match="AXON_PEPPER"):
        require_pepper(settings)
    require_pepper(Settings(data_dir=tmp_path / "data", pepper="0123456789abcdef0123456789abcdef"))
    load_pepper(settings)
    require_pepper(settings)
