"""Grammars of requests: what is known costs nothing, tenants take turns, and nobody waits without a bound."""

import asyncio
from typing import Any

import pytest

from axon.errors import Draining, InvalidInput, LimitReached, Overloaded
from axon.sessions import grammars
from axon.sessions.grammars import Grammars
from axon.sessions.known_results import KnownResults
from axon.text.compiler.messages import Result, Task
from axon.text.grammar import schema_grammar
from tests.sessions.in_process import InProcess


class Gated:
    """A compiler whose results come when the test lets them."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._gate = asyncio.Semaphore(0)

    def warm(self) -> None: ...

    async def run(self, task: Task) -> Result:
        self.begun.append(task.text)
        await self._gate.acquire()
        if task.text == "deadly":
            return Result(problem="it could not be compiled")
        return Result(cpu_s=0.2)

    def let(self, number: int) -> None:
        for _ in range(number):
            self._gate.release()

    async def aclose(self) -> None: ...


async def passes() -> None:
    """Lets everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def ask(found: Grammars, tenant: str, text: str) -> asyncio.Task[Result]:
    return asyncio.create_task(found.result(tenant, Task(kind="grammar", text=text)))


async def test_another_tenants_grammar_goes_next_however_many_one_tenant_has_sent() -> None:
    compiler = Gated()
    found = Grammars(compiler)
    hostile = [ask(found, "hostile", f"hostile {number}") for number in range(50)]
    await passes()
    other = ask(found, "other", "other")
    await passes()
    assert compiler.begun == ["hostile 0"]
    compiler.let(2)
    assert await asyncio.wait_for(other, 60) == Result(cpu_s=0.2)
    assert compiler.begun[:2] == ["hostile 0", "other"]
    compiler.let(50)
    await asyncio.gather(*hostile)
    assert compiler.begun[2:] == [f"hostile {number}" for number in range(1, 50)]
    await found.aclose()


async def test_what_is_known_is_not_compiled_again_also_if_it_became_known_while_it_waited() -> None:
    compiler = Gated()
    found = Grammars(compiler)
    asked = [ask(found, tenant, "deadly") for tenant in ("a", "a", "b")]
    compiler.let(1)
    problems = {(await each).problem for each in asked}
    assert problems == {"it could not be compiled"}
    assert (await found.result("c", Task(kind="grammar", text="deadly"))).problem
    assert compiler.begun == ["deadly"]
    await found.aclose()


async def test_an_asker_that_leaves_waits_no_longer_and_what_was_begun_for_it_is_remembered() -> None:
    compiler = Gated()
    found = Grammars(compiler)
    begun, waiting = ask(found, "a", "begun"), ask(found, "a", "waiting")
    await passes()
    for each in (begun, waiting):
        each.cancel()
    await asyncio.gather(begun, waiting, return_exceptions=True)
    compiler.let(1)
    await passes()
    assert await found.result("b", Task(kind="grammar", text="begun")) == Result()
    assert compiler.begun == ["begun"]
    await found.aclose()


async def test_a_tenant_with_too_many_waiting_is_told_so_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "_MAX_WAITING_OF_TENANT", 2)
    monkeypatch.setattr(grammars, "_MAX_WAITING", 3)
    compiler = Gated()
    found = Grammars(compiler)
    asked = []
    for number in range(3):  # one is compiled, two wait
        asked.append(ask(found, "a", f"{number}"))
        await passes()
    with pytest.raises(LimitReached, match="2 new schemas and grammars waiting") as limit:
        await found.result("a", Task(kind="grammar", text="more"))
    assert limit.value.retry_after_s
    asked.append(ask(found, "b", "b"))
    await passes()
    with pytest.raises(Overloaded) as overload:
        await found.result("c", Task(kind="grammar", text="c"))
    assert overload.value.retry_after_s
    compiler.let(4)
    await asyncio.gather(*asked)
    await found.aclose()


async def test_a_request_whose_grammar_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "_TIMEOUT_S", 0.01)
    found = Grammars(Gated())
    with pytest.raises(Overloaded) as raised:
        await found.of("a").schema({"type": "string"}, param="schema")
    assert raised.value.retry_after_s
    await found.aclose()


async def test_a_close_ends_the_wait_of_everybody_and_takes_no_more() -> None:
    compiler = Gated()
    found = Grammars(compiler)
    asked = [ask(found, "a", "begun"), ask(found, "a", "waiting"), ask(found, "b", "waiting")]
    await passes()
    await found.aclose()
    errors = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 5)
    assert [type(each) for each in errors] == [Draining] * 3
    with pytest.raises(Draining):
        await found.result("c", Task(kind="grammar", text="late"))
    assert compiler.begun == ["begun"]


async def test_a_failure_of_the_compiler_is_not_remembered() -> None:
    class Broken(Gated):
        async def run(self, task: Task) -> Result:
            self.begun.append(task.text)
            if len(self.begun) == 1:
                raise Overloaded(retry_after_s=1.0)
            return Result()

    found = Grammars(Broken())
    with pytest.raises(Overloaded):
        await found.result("a", Task(kind="grammar", text="x"))
    assert await found.result("a", Task(kind="grammar", text="x")) == Result()
    await found.aclose()


async def test_the_schemas_of_one_request_have_a_bound_of_processor_time_together() -> None:
    compiler = Gated()
    compiler.let(100)
    found = Grammars(compiler).of("a")
    schemas = [schema_grammar({"const": number}) for number in range(9)]
    with pytest.raises(InvalidInput, match="too long to compile"):
        await found.problems(schemas, param="tools")
    assert len(compiler.begun) == 6
    assert await found.problems(schemas, param="tools") == [""] * 9, "what is known takes no time"
    await found.grammars.aclose()


async def test_what_is_known_of_a_schema_is_not_lost_to_those_beside_it() -> None:
    found = Grammars(InProcess(), known=KnownResults(max_entries=2)).of("a")
    schemas: list[dict[str, Any]] = [{"not": {}}, *({"const": number} for number in range(5))]
    [first] = await found.problems([schema_grammar(schemas[0])], param="tools")
    assert first
    assert await found.problems([schema_grammar(each) for each in schemas], param="tools") == [first, *[""] * 5]
    await found.grammars.aclose()


async def test_a_schema_at_the_depth_that_json_can_have_is_refused_by_name() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"items": schema}
    found = Grammars(InProcess()).of("a")
    with pytest.raises(InvalidInput, match="nested too deeply") as raised:
        await found.schema(schema, param="guided_json")
    assert (raised.value.param, raised.value.code) == ("guided_json", "invalid_schema")
