"""The process that compiles grammars: what ends it ends nothing else, and it ends with its gateway."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from axon.errors import Overloaded, Unavailable
from axon.sessions import compiler, grammars
from axon.sessions.compiler import Compiler
from axon.text.compiler.messages import Result, Task
from axon.text.grammar import schema_grammar
from tests.journeys.planted import python_path
from tests.journeys.server import wait_until

OWNER = """
import asyncio, axon.sessions.compiler as c
from axon.text.compiler.messages import Task
async def own():
    compiler = c.Compiler()
    await compiler.run(Task(kind="regex", text="a"))
    print(compiler.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(own())
"""


def task(schema: dict[str, Any], kind: Any = "schema") -> Task:
    return Task(kind=kind, text=schema_grammar(schema).text)


FINE = task({"type": "string"})
DEADLY = task({"const": -(2**63)}, kind="grammar")
"""It makes llguidance overflow its stack. Sent as a schema, it would be refused by the bounds before it is compiled."""


@pytest.fixture
async def found() -> AsyncIterator[Compiler]:
    found = Compiler(max_cpu_s=1)
    yield found
    await found.aclose()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", python_path(tmp_path / "plants"))


def is_gone(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_it_says_what_is_wrong_and_makes_grammars(found: Compiler) -> None:
    assert (await found.run(FINE)).problem == ""
    made = await found.run(Task(kind="rules", text='root ::= "a"'))
    assert "start" in made.made
    assert not made.problem
    assert "unclosed" in (await found.run(Task(kind="regex", text="("))).problem


async def test_a_grammar_that_overflows_the_stack_is_refused_and_the_next_one_is_compiled(found: Compiler) -> None:
    await found.run(FINE)
    first = found.pid
    assert (await found.run(DEADLY)).problem == "it could not be compiled"
    assert (await found.run(FINE)).problem == ""
    assert found.pid != first


async def test_a_task_whose_process_was_killed_by_somebody_else_is_tried_again(found: Compiler) -> None:
    await found.run(FINE)
    assert found.pid is not None
    os.kill(found.pid, signal.SIGKILL)
    assert (await found.run(FINE)).problem == ""


@pytest.mark.usefixtures("planted")
async def test_what_computes_for_ever_or_takes_all_memory_is_refused(
    found: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "_ANSWER_S", 60.0)  # a busy machine may take long for a second of processor time
    assert (await found.run(task({"const": "planted loop"}))).problem == "it takes too long to compile"
    assert (await found.run(task({"const": "planted growth"}))).problem == "it could not be compiled"
    assert (await found.run(FINE)).problem == ""


@pytest.mark.usefixtures("planted")
async def test_a_task_whose_processes_were_killed_from_outside_is_refused_for_now_alone(found: Compiler) -> None:
    with pytest.raises(Unavailable, match="was killed"):
        await found.run(task({"const": "planted kill"}))
    assert (await found.run(task({"const": "planted crash"}))).problem == "it could not be compiled"


def test_a_task_that_never_ends_leaves_others_time_to_be_compiled() -> None:
    assert Compiler()._max_cpu_s + 1 <= compiler._ANSWER_S <= grammars._TIMEOUT_S - 2


@pytest.mark.usefixtures("planted")
async def test_a_process_that_stands_still_is_replaced(found: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    await found.run(FINE)
    monkeypatch.setattr(compiler, "_ANSWER_S", 0.05)
    with pytest.raises(Overloaded):
        await found.run(task({"const": "planted stall"}))
    monkeypatch.undo()
    assert (await found.run(FINE)).problem == ""


async def test_a_process_that_cannot_be_started_is_no_fault_of_a_grammar(
    found: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/nowhere/python")
        broken.setattr(compiler, "_START_S", 0.3)
        with pytest.raises(Unavailable, match="does not start"):
            await found.run(FINE)
    assert (await found.run(FINE)).problem == ""


async def test_a_process_whose_result_cannot_be_read_is_replaced(
    found: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    await found.run(FINE)
    first = found.pid
    with monkeypatch.context() as broken:
        broken.setattr(compiler, "decode_result", lambda body: msgspec.msgpack.decode(body, type=int))
        with pytest.raises(Unavailable, match="no result that can be read"):
            await found.run(FINE)
    assert (await found.run(FINE)).problem == ""
    assert found.pid != first


async def test_it_is_warm_before_the_first_task(found: Compiler) -> None:
    found.warm()
    await asyncio.to_thread(wait_until, lambda: found.is_ready, "the process is ready")
    pid = found.pid
    await found.run(FINE)
    assert found.pid == pid


@pytest.mark.usefixtures("planted")
async def test_a_close_in_the_middle_of_a_task_ends_the_process() -> None:
    found = Compiler()
    await found.run(FINE)
    pid = found.pid
    assert pid is not None
    running = asyncio.create_task(found.run(task({"const": "planted stall"})))
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await found.aclose()
    assert is_gone(pid)


def test_it_ends_with_its_gateway_also_when_that_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert not is_gone(pid)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: is_gone(pid), "the compiler has ended")


def test_a_result_is_about_as_large_as_its_texts() -> None:
    assert Result(problem="no", made="start").num_bytes == 7
