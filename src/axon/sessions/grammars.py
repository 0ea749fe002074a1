"""Checks the grammars that requests bring, in threads and once for each. Knows no API and no engine.

A grammar costs milliseconds to compile, so the results of the last ``_MOST_KEPT`` are kept by their digests.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from axon.errors import InvalidInput, Overloaded
from axon.text.grammar import Grammar, schema_grammar
from axon.text.grammar_check import GrammarCheck
from axon.text.schema_bounds import MAX_BYTES, SchemaRefused, check_schema

_MOST_KEPT = 1024
_TIMEOUT_S = 5.0
"""A grammar that waits longer than this for a thread is refused with 503."""


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
        digest = hashlib.blake2b(grammar.after("").encode(), digest_size=16).digest()
        if digest in self._found:
            self._found.move_to_end(digest)
            return self._found[digest]
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                found = await asyncio.get_running_loop().run_in_executor(self._threads, self._find, grammar, schema)
        except TimeoutError:
            raise Overloaded(retry_after_s=1.0) from None
        self._found[digest] = found
        if len(self._found) > _MOST_KEPT:
            self._found.popitem(last=False)
        return found

    def _find(self, grammar: Grammar, schema: Mapping[str, Any] | None) -> str:
        try:
            if schema is not None:
                check_schema(schema)
        except SchemaRefused as error:
            return error.message
        return self._check.problem(grammar)

    def close(self) -> None:
        """Stops the threads after what they compile now."""
        self._threads.shutdown(wait=False, cancel_futures=True)
