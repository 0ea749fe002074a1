"""A process that does tasks: late, cancelled and deadly tasks end it and nothing else, and it ends with its owner."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path

import pytest

from axon.runtime.child import Connected, launch_module, plain_environment
from axon.runtime.task_process import Died, NotStarted, TaskProcess, delay_s

ASKER = ContextVar("asker", default="nobody")


class Doing:
    """A process of tests, and what it was heard of."""

    def __init__(self, max_answer_bytes: int = 1 << 20) -> None:
        self.codes: list[int] = []
        self.askers: list[str] = []
        self.reasons: list[str] = []
        self.module = "tests.runtime.done_tasks"
        self.pass_fds: list[int] = []
        self.process = TaskProcess(
            self._launch,
            on_death=self._note_death,
            on_not_started=self.reasons.append,
            max_answer_bytes=max_answer_bytes,
        )

    def _note_death(self, code: int, deaths: int) -> None:
        self.codes.append(code)
        self.askers.append(ASKER.get())

    async def _launch(self) -> Connected:
        if not self.module:
            raise OSError(12, "no memory")
        environment = plain_environment(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[2])}
        return await launch_module(
            self.module, lambda fd: (str(fd),), has_secrets=False, environment=environment, pass_fds=self.pass_fds
        )

    async def ask(self, task: str, answer_s: float = 60.0) -> str:
        return (await self.process.ask(task.encode(), start_s=60.0, answer_s=answer_s)).decode()


@pytest.fixture
async def doing() -> AsyncIterator[Doing]:
    doing = Doing()
    yield doing
    await doing.process.aclose()


async def test_it_starts_with_the_first_task_and_does_one_after_the_other(doing: Doing) -> None:
    assert (doing.process.pid, doing.process.is_started, doing.process.is_ready) == (None, False, False)
    assert [await doing.ask("say a"), await doing.ask("say b")] == ["a", "b"]
    assert doing.process.is_ready
    assert doing.codes == []


@pytest.mark.parametrize(
    ("task", "code", "took_too_long", "is_of_task"),
    [
        ("loop", -signal.SIGPROF, True, False),
        ("abort", -signal.SIGABRT, False, True),
        ("fail", 1, False, True),
        ("kill", -signal.SIGKILL, False, False),
    ],
)
async def test_a_task_that_ends_it_is_told_why_and_the_next_is_done(
    doing: Doing, task: str, code: int, took_too_long: bool, is_of_task: bool
) -> None:
    with pytest.raises(Died) as death:
        await doing.ask(task)
    assert (death.value.took_too_long, death.value.is_of_task) == (took_too_long, is_of_task)
    assert await doing.ask("say a") == "a"
    assert doing.codes == [code]


async def test_a_task_that_is_late_or_cancelled_is_ended_with_its_process(doing: Doing) -> None:
    await doing.ask("say a")
    first = doing.process.pid
    with pytest.raises(TimeoutError):
        await doing.ask("sleep", answer_s=0.01)
    assert await doing.ask("say b") == "b"
    second = doing.process.pid
    cancelled = asyncio.create_task(doing.ask("sleep"))
    await asyncio.sleep(0)  # the process is ready, so that the task is sent at once
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    assert await doing.ask("say c") == "c"
    assert len({first, second, doing.process.pid}) == 3


async def test_a_close_while_a_process_is_being_ended_waits_for_its_end_too(doing: Doing) -> None:
    await doing.ask("say a")
    child = doing.process._child
    assert child is not None
    process, is_waited_for = child.connected.process, asyncio.Event()
    wait = process.wait

    async def wait_long() -> int:
        is_waited_for.set()
        await asyncio.sleep(0.05)
        return await wait()

    process.wait = wait_long  # type: ignore[method-assign]
    doing.process.replace()
    await is_waited_for.wait()
    await doing.process.aclose()
    assert process.returncode == -signal.SIGKILL


async def test_its_end_is_not_told_in_the_name_of_whoever_started_it(doing: Doing) -> None:
    ASKER.set("innocent")
    assert await doing.ask("say a") == "a"
    ASKER.set("culprit")
    with pytest.raises(Died):
        await doing.ask("fail")
    assert await doing.ask("say b") == "b"
    assert doing.askers == ["nobody"]


async def test_an_answer_beyond_its_bound_ends_the_process() -> None:
    doing = Doing(max_answer_bytes=10)
    with pytest.raises(Died):
        await doing.ask("say more than ten bytes")
    assert await doing.ask("say ten bytes.") == "ten bytes."
    await doing.process.aclose()


async def test_one_that_is_not_started_is_waited_for_and_told(doing: Doing) -> None:
    doing.module = ""
    with pytest.raises(NotStarted):
        await doing.process.ask(b"say a", start_s=0.05, answer_s=60.0)
    assert doing.reasons[0] == os.strerror(12)
    doing.module = "tests.runtime.done_tasks"
    assert await doing.ask("say a") == "a"


async def test_signals_to_its_owners_group_do_not_end_it(doing: Doing) -> None:
    await doing.ask("say a")
    pid = doing.process.pid
    assert pid is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, number)
    assert await doing.ask("say b") == "b"
    assert doing.process.pid == pid


async def test_it_has_no_descriptor_but_its_socket_and_streams_that_lead_nowhere(doing: Doing) -> None:
    """An event loop may leave others open, such as duplicates of its own streams."""
    doing.pass_fds = [os.dup(0), os.dup(1)]
    await doing.ask("say a")
    for fd in doing.pass_fds:
        os.close(fd)
    folder = f"/proc/{doing.process.pid}/fd"
    opened = {int(name): os.readlink(f"{folder}/{name}").partition(":")[0] for name in os.listdir(folder)}
    assert opened == {0: "/dev/null", 1: "/dev/null", 2: "/dev/null", 3: "socket"}


async def test_it_has_the_limits_that_its_program_asks_for(doing: Doing) -> None:
    await doing.ask("say a")
    limits = (Path(f"/proc/{doing.process.pid}") / "limits").read_text()
    bounds = dict(re.findall(r"(?m)^(Max .+?)  +(\w+ +\w+)", limits))
    assert bounds["Max core file size"].split() == ["0", "0"]
    assert bounds["Max address space"].split() == [str(512 << 20)] * 2
    with pytest.raises(Died) as death:
        await doing.ask("grow")
    assert death.value.is_of_task


def test_processes_that_die_one_after_the_other_are_started_ever_later() -> None:
    delays = [delay_s(number) for number in range(100)]
    assert delays[:4] == [0.0, 0.0, 0.1, 0.2]
    assert delays == sorted(delays)
    assert delays[-1] == 1.0
