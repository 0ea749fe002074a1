"""Checks the grammars that requests bring, in threads and once for each. Knows no API and no engine.

A grammar costs milliseconds to compile, so the results of the last ``_MOST_KEPT`` are kept by their digests.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

from axon.errors import InvalidInput, Overloaded
from axon.text.grammar import Grammar, schema_grammar
from axon.text.grammar_check import GrammarCheck
from axon.text.schema_bounds import MAX_BYTES, SchemaRefused, check_schema

T = TypeVar("T")
_MOST_KEPT = 1024
_TIMEOUT_S = 5.0
"""A grammar that waits longer than this for a thread is refused with 503."""
_MAX_TOGETHER_S = 1.0
"""Processor time that the schemas of one request may take to compile; each alone takes milliseconds."""


class Grammars:
    """Says whether grammars can be used. Its threads start with the first grammar."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="grammars")
        self._found: OrderedDict[bytes, str] = OrderedDict()

    @cached_property
    def _check(self) -> GrammarCheck:
        return GrammarCheck()

    async def schema(self, schema: Mapping[str, Any], *, param: str) -> Grammar:
        """The grammar of a JSON schema; raises ``InvalidInput`` with what is unsupported in it."""
        return await self.checked(schema_grammar(schema), param=param, schema=schema)

    async def made(self, make: Callable[[Any], Grammar], value: Any) -> Grammar:
        """What ``make`` returns, in a thread: to convert a client's rules takes tens of milliseconds."""
        return await self._run(make, value)

    async def checked(self, grammar: Grammar, *, param: str, schema: Mapping[str, Any] | None = None) -> Grammar:
        """The grammar, if it can be used; raises ``InvalidInput`` otherwise. ``schema`` is what it was made of."""
        what = "grammar" if schema is None else "schema"
        if len(grammar.text) > MAX_BYTES:
            problem = f"it has {len(grammar.text)} bytes, and may have {MAX_BYTES}"
        else:
            problem = await self.problem(grammar, schema)
        if problem:
            raise InvalidInput(f"Invalid {what} for '{param}': {problem}.", param=param, code=f"invalid_{what}")
        return grammar

    async def problem(self, grammar: Grammar, schema: Mapping[str, Any] | None = None) -> str:
        """Why the grammar cannot be used; empty if it can. ``schema`` is what it was made of, whose size is bounded."""
        if (known := self._known(digest := _digest(grammar))) is not None:
            return known
        return self._keep(digest, await self._run(self._find, grammar, schema))

    async def problems(self, asked: Sequence[tuple[Grammar, Mapping[str, Any]]], *, param: str) -> list[str]:
        """Why each of these grammars, with the schema that it was made of, cannot be used; empty for one that can.
        Raises ``InvalidInput`` if they take too long together."""
        digests = [_digest(grammar) for grammar, _ in asked]
        problems = {each: known for each in digests if (known := self._known(each)) is not None}
        new = {each: pair for each, pair in zip(digests, asked, strict=True) if each not in problems}
        found = await self._run(self._find_all, [*new.values()]) if new else []
        if len(found) < len(new):
            raise InvalidInput("The schemas of the tools take too long to compile.", param=param, code="invalid_schema")
        problems |= {each: self._keep(each, problem) for each, problem in zip(new, found, strict=True)}
        return [problems[each] for each in digests]

    def _known(self, digest: bytes) -> str | None:
        if digest in self._found:
            self._found.move_to_end(digest)
        return self._found.get(digest)

    def _keep(self, digest: bytes, problem: str) -> str:
        self._found[digest] = problem
        if len(self._found) > _MOST_KEPT:
            self._found.popitem(last=False)
        return problem

    async def _run(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except TimeoutError:
            raise Overloaded(retry_after_s=1.0) from None

    def _find(self, grammar: Grammar, schema: Mapping[str, Any] | None) -> str:
        try:
            if schema is not None:
                check_schema(schema)
        except SchemaRefused as error:
            return error.message
        return self._check.problem(grammar)

    def _find_all(self, asked: Sequence[tuple[Grammar, Mapping[str, Any]]]) -> list[str]:
        """Why each cannot be used, up to the first for which no time is left."""
        found: list[str] = []
        until = time.thread_time() + _MAX_TOGETHER_S
        for grammar, schema in asked:
            if time.thread_time() > until:
                break
            is_long = len(grammar.text) > MAX_BYTES
            too_long = f"it has {len(grammar.text)} bytes, and may have {MAX_BYTES}"
            found.append(too_long if is_long else self._find(grammar, schema))
        return found

    def close(self) -> None:
        """Stops the threads after what they compile now."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _digest(grammar: Grammar) -> bytes:
    return hashlib.blake2b(grammar.after("").encode(), digest_size=16).digest()
