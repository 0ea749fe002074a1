"""What every process has: a life from ready to drained, and probes that tell how it stands."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from axon.bootstrap.process import Process, counted, started
from axon.errors import AxonError, DependencyDown, Misconfigured, ServiceRefuses
from axon.runtime.clock import FakeClock, SystemClock
from axon.runtime.config import LifecycleConfig
from axon.settings import Settings


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(settings=Settings(data_dir=tmp_path, lifecycle=LifecycleConfig(drain_s=30.0)), clock=FakeClock())


async def nothing() -> None:
    """A step that has nothing to do."""


async def for_ever() -> None:
    await asyncio.Event().wait()


class Opening:
    """Opens a service that fails as often as it is told, and says what is open."""

    def __init__(self, *failures: AxonError) -> None:
        self._failures = list(failures)
        self.num_tries = 0
        self.is_open = False

    async def __call__(self, stack: AsyncExitStack) -> str:
        assert not self.is_open, "an attempt began with what the one before had opened"
        self.num_tries += 1
        self.is_open = True
        stack.callback(self._close)
        if self._failures:
            raise self._failures.pop(0)
        return "opened"

    def _close(self) -> None:
        self.is_open = False


async def test_a_service_that_does_not_answer_at_the_start_is_waited_for(process: Process) -> None:
    opening = Opening(DependencyDown("away"), DependencyDown("still away"))
    async with AsyncExitStack() as stack:
        assert await process.opened(opening, stack) == "opened"
        assert (opening.num_tries, opening.is_open) == (3, True)
    assert not opening.is_open


async def test_a_start_waits_for_nobody_who_refuses_and_for_no_other_error(process: Process) -> None:
    for error in (ServiceRefuses("wrong password"), Misconfigured("no such scheme")):
        opening = Opening(error)
        async with AsyncExitStack() as stack:
            with pytest.raises(type(error)):
                await process.opened(opening, stack)
            assert (opening.num_tries, opening.is_open) == (1, False)


async def test_a_start_waits_no_longer_than_its_time(tmp_path: Path) -> None:
    process = Process(settings=Settings(data_dir=tmp_path, lifecycle=LifecycleConfig(start_wait_s=0.25)))
    async with AsyncExitStack() as stack:
        opening = Opening(*(DependencyDown("away") for _ in range(1000)))
        with pytest.raises(DependencyDown, match="away"):
            await process.opened(opening, stack)
    assert 2 <= opening.num_tries < 20


async def test_a_process_that_is_stopped_while_it_waits_ends_at_once(process: Process) -> None:
    opening = Opening(*(DependencyDown("away") for _ in range(1000)))

    async def second(stack: AsyncExitStack) -> str:
        if opening.num_tries:
            process.lifecycle.stop()
        return await opening(stack)

    async with AsyncExitStack() as stack:
        assert await process.opened(second, stack) is None
    assert opening.num_tries <= 2
    assert not opening.is_open


async def test_a_process_is_drained_and_closed_in_this_order_and_ends_well(process: Process) -> None:
    steps: list[str] = []

    async def begun() -> None:
        steps.append("started")
        process.lifecycle.stop()

    async def drain() -> None:
        steps.append("drain")

    async def close() -> None:
        steps.append("close")

    assert await process.run([for_ever], started=begun, drain=drain, close=close) == 0
    assert steps == ["started", "drain", "close"]


async def test_it_takes_requests_for_its_notice_though_it_is_not_ready(tmp_path: Path) -> None:
    process = Process(settings=Settings(data_dir=tmp_path, lifecycle=LifecycleConfig(notice_s=600.0)))
    running = asyncio.create_task(process.run([for_ever], started=nothing, drain=for_ever))
    process.lifecycle.ready = True
    process.lifecycle.stop()
    await asyncio.sleep(0.05)
    assert not process.lifecycle.ready
    assert process.lifecycle.taking
    process.lifecycle.hurry.set()
    assert await running == 0


async def test_a_stop_says_what_it_waits_for_and_that_a_second_one_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(data_dir=tmp_path, lifecycle=LifecycleConfig(drain_s=600.0))
    with started(settings) as process:
        draining = asyncio.Event()

        async def begun() -> None:
            os.kill(os.getpid(), signal.SIGINT)

        async def drain() -> None:
            draining.set()
            await for_ever()

        running = asyncio.create_task(
            process.run([for_ever], started=begun, drain=drain, running=lambda: counted(2, "answer"))
        )
        await draining.wait()
        said = capsys.readouterr().err
        assert said == "axon: stopping; up to 600 s are left for 2 answers. A second ctrl-c ends it at once.\n"
        os.kill(os.getpid(), signal.SIGINT)
        assert await running == 0


async def test_a_stop_of_an_idle_process_says_nothing(process: Process, capsys: pytest.CaptureFixture[str]) -> None:
    async def begun() -> None:
        process.lifecycle.stop()

    assert await process.run([for_ever], started=begun, drain=nothing, running=lambda: counted(0, "answer")) == 0
    assert capsys.readouterr().err == ""


async def test_an_opening_is_broken_off_when_it_is_told_to_stop(process: Process) -> None:
    closed = asyncio.Event()

    async def slow() -> str:
        try:
            await for_ever()
        finally:
            closed.set()
        return "never"

    async def quick() -> str:
        return "open"

    assert await process.unless_stopped(quick()) == "open"
    process.lifecycle.stop()
    assert await process.unless_stopped(slow()) is None
    assert closed.is_set()


async def test_an_opening_that_fails_says_why(process: Process) -> None:
    async def refuse() -> None:
        raise Misconfigured("no model")

    with pytest.raises(Misconfigured, match="no model"):
        await process.unless_stopped(refuse())


async def test_the_second_signal_ends_the_waiting(tmp_path: Path) -> None:
    with started(Settings(data_dir=tmp_path)) as process:
        draining = asyncio.Event()

        async def drain() -> None:
            draining.set()
            await for_ever()

        running = asyncio.create_task(process.run([for_ever], started=nothing, drain=drain, close=for_ever))
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(draining.wait(), 60)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await asyncio.wait_for(running, 60) == 0


async def test_what_a_part_fails_of_comes_out_as_it_is(process: Process) -> None:
    async def refuse() -> None:
        raise Misconfigured("not like this")

    with pytest.raises(Misconfigured, match="not like this"):
        await process.run([refuse, for_ever], started=for_ever, drain=nothing)


async def test_an_unforeseen_failure_is_not_hidden_behind_one_of_ours(process: Process) -> None:
    async def fail(error: Exception) -> None:
        raise error

    with pytest.raises(ExceptionGroup) as failure:
        await process.run(
            [lambda: fail(AxonError()), lambda: fail(RuntimeError("bug"))], started=for_ever, drain=nothing
        )
    assert failure.group_contains(RuntimeError)


async def test_probes_tell_how_it_stands(process: Process) -> None:
    seen = False
    with process.probed("127.0.0.1", 0, "port", lambda: seen) as url:

        async def probe(path: str) -> tuple[int, str]:
            answer = await asyncio.to_thread(httpx.get, url + path)
            return answer.status_code, answer.json()["status"]

        assert await probe("/livez") == (200, "ok")
        assert await probe("/readyz") == (503, "starting")
        process.lifecycle.ready = seen = True
        assert await probe("/readyz") == (200, "ok")
        process.lifecycle.stop()
        assert await probe("/readyz") == (503, "draining")
        process.lifecycle.loop_ran_at = process.clock.monotonic() - 60
        assert await probe("/livez") == (503, "stuck")
        assert (await asyncio.to_thread(httpx.get, f"{url}/metrics")).status_code == 200
        assert (await asyncio.to_thread(httpx.get, f"{url}/other")).status_code == 404


async def test_the_event_loops_lag_is_measured_as_often_as_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty times within five seconds, which would take ten by default."""
    settings = Settings(data_dir=tmp_path, lifecycle=LifecycleConfig(lag_every_s=0.001))
    process = Process(settings=settings, clock=SystemClock())
    measured, often = list[float](), asyncio.Event()

    def observe(late_s: float) -> None:
        measured.append(late_s)
        if len(measured) == 20:
            often.set()

    async def begun() -> None:
        async with asyncio.timeout(60.0):
            await often.wait()
        process.lifecycle.stop()

    monkeypatch.setattr(process.metrics.process.event_loop_lag, "observe", observe)
    assert await process.run([for_ever], started=begun, drain=nothing) == 0
    assert min(measured) >= 0
