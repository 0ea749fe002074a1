"""Checks the grammars that requests bring: once for each, tenant by tenant. Knows no API, no engine and no process.

A grammar costs milliseconds to compile, so results are kept by their digests. One grammar is compiled at a time, and
tenants take turns: another tenant's grammar waits for one of yours at most, however many you send.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from axon.domain.fairness.round_robin import RoundRobin
from axon.errors import AxonError, Draining, InvalidInput, LimitReached, Overloaded
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.tasks import end
from axon.sessions.compiler import Compiling
from axon.sessions.known_results import KnownResults
from axon.telemetry.declared.work import GrammarMetrics
from axon.telemetry.metrics import Metrics
from axon.text.compiler.messages import Result, Task
from axon.text.grammar import Grammar, schema_grammar
from axon.text.schema_bounds import too_long

_TIMEOUT_S = 5.0
"""A request whose grammars are not compiled after this is refused with 503."""
_MAX_TOGETHER_S = 1.0
"""Processor time that the schemas of one request may take to compile; each alone takes milliseconds."""
_MAX_WAITING_OF_TENANT = 256
_MAX_WAITING = 2048
_IDLE_S = 5.0
"""Seconds after the gateway's start after which the compiler is started, if no grammar came before."""


@dataclass(slots=True, eq=False)
class _Asked:
    """A task that somebody waits for."""

    digest: bytes
    task: Task
    result: asyncio.Future[Result]

    def fail(self, error: Exception) -> None:
        """Ends the wait with an error, unless nobody waits any more."""
        if not self.result.done():
            self.result.set_exception(error)


class Grammars:
    """Has grammars compiled, one after the other, by round robin over tenants."""

    def __init__(
        self,
        compiler: Compiling,
        *,
        known: KnownResults | None = None,
        metrics: GrammarMetrics | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._compiler = compiler
        self._metrics, self._clock = metrics or Metrics().grammars, clock or SystemClock()
        self._known = KnownResults() if known is None else known
        self._waiting: RoundRobin[_Asked] = RoundRobin()
        self._working: asyncio.Task[None] | None = None
        self._is_closed = False

    def of(self, tenant: str) -> "TenantGrammars":
        """Returns the grammars of a tenant's requests."""
        return TenantGrammars(self, tenant)

    async def warm(self) -> None:
        """Starts the compiler once the gateway's own start is over."""
        await asyncio.sleep(_IDLE_S)
        self._compiler.warm()

    async def result(self, tenant: str, task: Task) -> Result:
        """Returns what is known of the task, or compiles it when it is next.

        Raises ``LimitReached`` or ``Overloaded`` if too many wait, and ``Draining`` once this is closed. The caller
        bounds the time.
        """
        digest = task.digest
        if (known := self._known.get(digest)) is not None:
            self._metrics.cache_hits.labels(task.kind).inc()
            return known
        if self._is_closed:
            raise self.refused("draining", Draining(retry_after_s=1.0))
        self._check_room(tenant)
        asked = _Asked(digest, task, asyncio.get_running_loop().create_future())
        self._waiting.add(tenant, asked)
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        try:
            return await asked.result
        finally:
            self._waiting.drop(tenant, asked)

    async def aclose(self) -> None:
        """Ends the compiler. Those that wait for it get ``Draining``."""
        self._is_closed = True
        if self._working is not None:
            await end(self._working)
        while (asked := self._waiting.take()) is not None:
            asked.fail(Draining(retry_after_s=1.0))
        await self._compiler.aclose()

    def _check_room(self, tenant: str) -> None:
        if self._waiting.num_of(tenant) >= _MAX_WAITING_OF_TENANT:
            waiting = f"You have {_MAX_WAITING_OF_TENANT} new schemas and grammars waiting to be compiled"
            error = LimitReached(f"{waiting}, the most that may wait; try again soon.", retry_after_s=1.0)
            raise self.refused("tenant_full", error)
        if len(self._waiting) >= _MAX_WAITING:
            raise self.refused("full", Overloaded(retry_after_s=1.0))

    def refused(self, reason: str, error: AxonError) -> AxonError:
        """Counts a grammar that is not compiled; returns the error."""
        self._metrics.refusals.labels(reason).inc()
        return error

    async def _compiled(self, task: Task) -> Result:
        """Compiles a task, and counts it by its result."""
        began, outcome = self._clock.monotonic(), "failed"
        try:
            result = await self._compiler.run(task)
            outcome = "refused" if result.problem else "compiled"
            return result
        finally:
            self._metrics.compilations.labels(task.kind, outcome).inc()
            self._metrics.seconds.labels(task.kind).observe(self._clock.monotonic() - began)

    async def _work(self) -> None:
        """Compiles until nothing waits. A task that has begun is finished and remembered, if its asker leaves too."""
        while (asked := self._waiting.take()) is not None:
            try:
                result = self._known.get(asked.digest)
                if result is None:
                    result = await self._compiled(asked.task)
                    self._known.keep(asked.digest, replace(result, cpu_s=0.0))
            except Exception as error:
                asked.fail(error)
            except asyncio.CancelledError:
                asked.fail(Draining(retry_after_s=1.0))
                raise
            else:
                if not asked.result.done():
                    asked.result.set_result(result)


@dataclass(frozen=True, slots=True)
class TenantGrammars:
    """Says whether the grammars of a tenant's requests can be used."""

    grammars: Grammars
    tenant: str

    async def schema(self, schema: Mapping[str, Any], *, param: str) -> Grammar:
        """The grammar of a JSON schema; raises ``InvalidInput`` with what is unsupported in it."""
        try:
            grammar = schema_grammar(schema)
        except RecursionError:
            raise _invalid("schema", param, "it is nested too deeply") from None
        if problem := await self._problem(_schema_task(grammar)):
            raise _invalid("schema", param, problem)
        return grammar

    async def made(self, kind: Literal["regex", "rules"], text: str, *, param: str) -> Grammar:
        """The grammar of a client's regex, or of its Lark or GBNF rules; raises ``InvalidInput`` if it is none."""
        [result] = await self._results([Task(kind=kind, text=text)])
        if result.problem:
            is_regex = kind == "regex" and not result.made
            raise _invalid("regex" if is_regex else "grammar", param, result.problem)
        return Grammar(result.made)

    async def checked(self, grammar: Grammar, *, param: str) -> Grammar:
        """The grammar, if it can be used; raises ``InvalidInput`` otherwise."""
        if problem := too_long(grammar.text) or await self.problem(grammar):
            raise _invalid("grammar", param, problem)
        return grammar

    async def problem(self, grammar: Grammar) -> str:
        """Why a grammar of our own making cannot be used; empty if it can."""
        return await self._problem(Task(kind="grammar", text=grammar.text, form=grammar.form))

    async def problems(self, schemas: Sequence[Grammar], *, param: str) -> list[str]:
        """Why each of these grammars of schemas cannot be used; empty for one that can.
        Raises ``InvalidInput`` if they take too long together."""
        found = await self._results([_schema_task(each) for each in schemas], max_cpu_s=_MAX_TOGETHER_S)
        if len(found) < len(schemas):
            raise InvalidInput("The schemas of the tools take too long to compile.", param=param, code="invalid_schema")
        return [each.problem for each in found]

    async def _problem(self, task: Task) -> str:
        [result] = await self._results([task])
        return result.problem

    async def _results(self, tasks: Sequence[Task], *, max_cpu_s: float = math.inf) -> list[Result]:
        """The results of tasks, one after the other, up to the first for which no processor time is left."""
        found: list[Result] = []
        spent_s = 0.0
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                for task in tasks:
                    if spent_s > max_cpu_s:
                        break
                    found.append(await self._result(task))
                    spent_s += found[-1].cpu_s
        except TimeoutError:
            raise self.grammars.refused("timeout", Overloaded(retry_after_s=1.0)) from None
        return found

    async def _result(self, task: Task) -> Result:
        if task.kind == "schema" and (problem := too_long(task.text)):
            return Result(problem=problem)
        return await self.grammars.result(self.tenant, task)


def _schema_task(grammar: Grammar) -> Task:
    return Task(kind="schema", text=grammar.text)


def _invalid(what: str, param: str, problem: str) -> InvalidInput:
    code = "invalid_schema" if what == "schema" else "invalid_grammar"
    return InvalidInput(f"Invalid {what} for '{param}': {problem}.", param=param, code=code)
