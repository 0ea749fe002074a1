"""Texts are rendered in processes of their own: what one text does to them changes nothing for another."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from axon.errors import Draining, LimitReached, Overloaded, TooLarge, Unavailable
from axon.gateway.pages.rendering import renderer as module
from axon.gateway.pages.rendering.plain import MAX_CHARS, plain
from axon.gateway.pages.rendering.renderer import Rendered, Renderer
from axon.runtime.child import Connected
from axon.runtime.clock import FakeClock
from tests.journeys.planted import python_path
from tests.journeys.server import wait_until
from tests.sessions.test_compiler import is_gone

CODE = "```python\nprint(1)\n```"
COLOURED = '<span class="nb">print</span>'
BACKTRACKING = "```python\n" + " \n" * 4_500 + "```"
"""Nine kilobytes over which Pygments's lexer takes seconds."""
SWELLING = "[a]: <b>\n" * 20_000 + "[a]" * 6_000
STALLING = "planted stall"


@pytest.fixture
async def renderer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Renderer]:
    """A renderer in whose processes crashes are planted. A busy machine may take long for a second of work."""
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path / "plants"))
    monkeypatch.setattr(module, "_ANSWER_S", 120.0)
    monkeypatch.setattr(module, "_START_S", 120.0)
    monkeypatch.setattr(module, "_WAIT_S", 120.0)
    renderer = Renderer()
    yield renderer
    await renderer.aclose()


def begun(renderer: Renderer, tenant: str, text: str) -> "asyncio.Task[Rendered]":
    return asyncio.create_task(renderer.rendered(tenant, text))


async def left(task: "asyncio.Task[Rendered]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def is_busy(renderer: Renderer, num: int = 1) -> list[int]:
    """Waits until this many processes have a text; returns their pids."""

    def busy() -> list[int]:
        working = (each for each in renderer._processes if each.is_ready and each not in renderer._free)
        return [each.pid for each in working if each.pid is not None]

    await asyncio.to_thread(wait_until, lambda: len(busy()) >= num, "processes have texts", 120.0)
    return busy()


async def test_a_text_is_rendered_up_to_its_bound(renderer: Renderer) -> None:
    assert await renderer.rendered("a", "*a*") == Rendered("<p><em>a</em></p>\n")
    assert (await renderer.rendered("a", "word\n\n" * 2_000)).html.count("<p>") == 2_000
    assert not (await renderer.rendered("a", "a" * MAX_CHARS)).is_plain
    with pytest.raises(TooLarge, match="at most 200000"):
        await renderer.rendered("a", "a" * (MAX_CHARS + 1))


async def test_no_process_is_started_before_the_first_text_and_one_for_one_tenant() -> None:
    renderer = Renderer()
    assert renderer.pids == []
    await asyncio.gather(*(renderer.rendered("a", f"*{number}*") for number in range(5)))
    assert len(renderer.pids) == 1
    await renderer.aclose()


async def test_while_one_tenants_text_is_being_rendered_another_tenants_is_rendered(renderer: Renderer) -> None:
    hostile = [begun(renderer, "hostile", STALLING) for _ in range(20)]
    [pid] = await is_busy(renderer)
    for _ in range(3):
        assert COLOURED in (await renderer.rendered("other", CODE)).html
    assert not any(each.done() for each in hostile)
    assert pid in renderer.pids
    for each in hostile:
        await left(each)


@pytest.mark.parametrize("text", ["planted loop", "planted crash", "planted kill", "planted growth"])
async def test_a_text_that_ends_its_process_is_shown_as_it_is_and_the_next_is_rendered(
    renderer: Renderer, text: str
) -> None:
    renderer._max_cpu_s = 0.5
    first = begun(renderer, "hostile", f"*{text}* <b>")
    assert await first == Rendered(plain(f"*{text}* <b>"), is_plain=True)
    assert COLOURED in (await renderer.rendered("hostile", CODE)).html
    assert COLOURED in (await renderer.rendered("other", CODE)).html


@pytest.mark.parametrize("text", [BACKTRACKING, SWELLING])
async def test_hostile_text_is_readable_and_others_are_coloured(renderer: Renderer, text: str) -> None:
    hostile, other = begun(renderer, "hostile", text), begun(renderer, "other", CODE)
    assert COLOURED in (await other).html
    assert (await hostile).html
    assert COLOURED in (await renderer.rendered("other", CODE)).html


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("bash", "$'" + "\\" * 9_000),
        ("c", "class " + " " * 9_000),
        ("cpp", "<!--" + "\n" * 9_000),
        ("csharp", "a\n" * 4_500),
        ("docker", "$'" + "\\" * 9_000),
        ("java", "\n" * 9_000),
        ("python", " \n" * 4_500),
    ],
)
async def test_code_over_which_a_lexer_backtracks_is_shown_without_colours_and_the_rest_is_rendered(
    renderer: Renderer, language: str, source: str
) -> None:
    """The worst texts that were found for the lexers of the list, each of which takes seconds or for ever."""
    found = await renderer.rendered("a", f"*before*\n\n```{language}\n{source}\n```\n\n*behind*")
    assert not found.is_plain
    assert "<em>before</em>" in found.html
    assert "<em>behind</em>" in found.html
    assert "<span" not in found.html


async def test_a_text_that_is_late_is_shown_as_it_is(renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    await renderer.rendered("a", CODE)
    monkeypatch.setattr(module, "_ANSWER_S", 0.05)
    assert (await renderer.rendered("a", STALLING)).is_plain


async def test_a_reader_that_leaves_ends_the_wait_and_its_text_keeps_its_process_to_the_end(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await renderer.rendered("a", CODE)
    monkeypatch.setattr(module, "_ANSWER_S", 3.0)
    working = begun(renderer, "a", STALLING)
    [pid] = await is_busy(renderer)
    waiting = begun(renderer, "a", STALLING)
    await asyncio.sleep(0)
    await left(waiting)
    assert len(renderer._queue) == 0
    await left(working)
    assert not is_gone(pid)
    assert len(renderer._free) == 1
    monkeypatch.setattr(module, "_ANSWER_S", 120.0)
    assert COLOURED in (await renderer.rendered("a", CODE)).html
    assert is_gone(pid)
    assert len(renderer._free) == len(renderer._processes)


async def test_a_tenant_that_leaves_costly_texts_again_and_again_never_takes_every_process(renderer: Renderer) -> None:
    renderer._max_cpu_s = 0.3
    await asyncio.gather(renderer.rendered("hostile", CODE), renderer.rendered("other", CODE))
    ready: list[int] = []
    """Processes that were ready each time when one had died."""
    for process in renderer._processes:
        process._on_death = lambda code, deaths: ready.append(sum(each.is_ready for each in renderer._processes))
    async with asyncio.timeout(120):
        while len(ready) < 4:
            costly = begun(renderer, "hostile", "planted loop")
            await asyncio.sleep(0.1)
            await left(costly)
    assert ready == [1] * len(ready)
    assert COLOURED in (await renderer.rendered("other", CODE)).html


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("text", ["planted loop", STALLING])
async def test_while_a_process_that_a_text_has_ended_restarts_its_tenant_has_no_other_and_is_charged(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch, text: str, leaves: bool
) -> None:
    renderer._max_cpu_s, renderer._clock = 0.5, (clock := FakeClock())
    charged: list[float] = []
    done = renderer._queue.done

    def noted(tenant: str, seconds: float) -> None:
        charged.extend([seconds] if tenant == "a" else [])
        done(tenant, seconds)

    monkeypatch.setattr(renderer._queue, "done", noted)
    await renderer.rendered("a", CODE)
    restarting, may_start = asyncio.Event(), asyncio.Event()

    async def launch() -> Connected:
        restarting.set()
        await may_start.wait()
        return await renderer._launch()

    renderer._processes[0]._launch = launch
    monkeypatch.setattr(module, "_ANSWER_S", 120.0 if text != STALLING else 0.5)
    costly = begun(renderer, "a", text)
    if leaves:
        await is_busy(renderer)
        await left(costly)
    else:
        assert (await costly).is_plain
    await restarting.wait()
    monkeypatch.setattr(module, "_ANSWER_S", 120.0)
    again = begun(renderer, "a", CODE)
    assert COLOURED in (await renderer.rendered("b", CODE)).html
    assert (again.done(), len(renderer._queue), len(renderer._free)) == (False, 1, 1)
    clock.advance(7.0)
    may_start.set()
    assert COLOURED in (await again).html
    assert charged == [0.0, 7.0, 0.0]


async def test_a_process_that_somebody_else_kills_between_two_texts_is_replaced(renderer: Renderer) -> None:
    await renderer.rendered("a", CODE)
    os.kill(renderer.pids[0], signal.SIGKILL)
    assert COLOURED in (await renderer.rendered("a", CODE)).html


async def test_too_many_texts_are_refused_and_one_that_waits_too_long(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = begun(renderer, "a", STALLING)
    [pid] = await is_busy(renderer)
    waiting = [begun(renderer, "a", CODE) for _ in range(module._MAX_WAITING_OF_TENANT)]
    await asyncio.sleep(0)
    with pytest.raises(LimitReached):
        await renderer.rendered("a", CODE)
    assert COLOURED in (await renderer.rendered("b", CODE)).html
    await left(waiting[0])
    monkeypatch.setattr(module, "_WAIT_S", 0.01)
    with pytest.raises(Overloaded):
        await renderer.rendered("a", CODE)
    await left(working)
    os.kill(pid, signal.SIGKILL)
    for result in await asyncio.gather(*waiting[1:]):
        assert COLOURED in result.html


async def test_tenants_with_many_texts_do_not_close_a_full_queue_to_another(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderer._queue, "_max_in_all", 3)
    working = [begun(renderer, tenant, STALLING) for tenant in "ab"]
    pids = await is_busy(renderer, 2)
    waiting = [begun(renderer, "a", CODE) for _ in range(3)]
    await asyncio.sleep(0)
    other = begun(renderer, "c", CODE)
    with pytest.raises(Overloaded):
        await waiting.pop()
    for task in working:
        await left(task)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for result in await asyncio.gather(other, *waiting):
        assert COLOURED in result.html


async def test_a_close_ends_the_processes_and_refuses_those_who_wait(renderer: Renderer) -> None:
    asked = [begun(renderer, tenant, STALLING) for tenant in "aabc"]
    pids = await is_busy(renderer, 2)
    await renderer.aclose()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in found] == [Draining] * 4
    assert all(map(is_gone, pids))
    with pytest.raises(Draining):
        await renderer.rendered("a", "x")


async def test_a_process_that_cannot_be_started_is_no_fault_of_a_text(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/nowhere/python")
        broken.setattr(module, "_START_S", 0.3)
        with pytest.raises(Unavailable, match="does not start"):
            await renderer.rendered("a", CODE)
    assert COLOURED in (await renderer.rendered("a", CODE)).html


async def test_a_process_has_its_socket_alone_and_none_of_the_gateways_secrets_or_signals(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXON_STORE_URL", "postgresql://user:secret@db/axon")
    ours = socket.socket()
    os.set_inheritable(ours.fileno(), True)
    await renderer.rendered("a", CODE)
    ours.close()
    process = Path(f"/proc/{renderer.pids[0]}")
    assert b"secret" not in (process / "environ").read_bytes()
    opened = sorted(os.readlink(each) for each in (process / "fd").iterdir())
    assert [each.partition(":")[0] for each in opened] == ["/dev/null"] * 3 + ["socket"]
    status = dict(line.split(":\t") for line in (process / "status").read_text().splitlines() if ":\t" in line)
    assert int(status["SigBlk"], 16) == 0
    assert int(status["SigCgt"], 16) == 0
    assert "axon-renderer" in status["Name"]
    limits = (process / "limits").read_text()
    assert str(256 << 20) in limits


async def test_a_process_without_work_ends_and_the_next_text_starts_another() -> None:
    clock = FakeClock()
    renderer = Renderer(clock=clock)
    try:
        assert COLOURED in (await renderer.rendered("acme", CODE)).html
        [pid] = renderer.pids
        clock.advance(module._IDLE_S - 1)
        renderer._end_idle()
        assert renderer.pids == [pid], "its time is not over"
        clock.advance(1)
        renderer._end_idle()
        later = await renderer.rendered("acme", CODE)  # also while the first is on its way out
        assert COLOURED in later.html
        await asyncio.gather(*renderer._restoring)
        assert is_gone(pid)
        assert pid not in renderer.pids
        assert len(renderer._free) == len(renderer._processes)
    finally:
        await renderer.aclose()


async def test_texts_are_counted_by_what_became_of_them(renderer: Renderer) -> None:
    def count(result: str) -> float:
        return renderer._metrics.texts.labels(result)._value.get()  # type: ignore[no-any-return]

    await renderer.rendered("acme", CODE)
    assert (count("formatted"), count("too_costly")) == (1, 0)
    await renderer.rendered("acme", "planted crash")
    assert (count("formatted"), sum(map(count, ("too_costly", "timeout", "crash")))) == (1, 1)
    assert renderer._metrics.waiting._value.get() == 0
