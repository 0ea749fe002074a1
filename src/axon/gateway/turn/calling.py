"""The plan of a request's tool calls for the version that answers it, with a grammar that was tried. Knows no API."""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

from axon.domain.tool import CallMode, Tool, Toolbox
from axon.errors import InvalidInput, Overloaded
from axon.gateway.turn.target import Target
from axon.text.grammar import Grammar, schema_grammar
from axon.text.grammar_check import GrammarCheck
from axon.text.schema_bounds import MAX_BYTES, SchemaRefused, check_schema
from axon.text.tools.formats import CallFormat, marks_of
from axon.text.tools.grammar import ANY, Schema, call_grammar, needs_grammar, schema_of
from axon.text.tools.plan import CallPlan, plan_of

_check = cache(GrammarCheck)
_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tools")
_TIMEOUT_S = 10.0
"""Tools whose grammar waits longer than this for a thread are refused with 503."""
_MAX_COMPILING_S = 1.0
"""Processor time that the schemas of a request's tools may take to compile, in seconds; each alone takes milliseconds,
and a request may have a thousand of them."""


async def planned(toolbox: Toolbox, target: Target) -> CallPlan:
    """Returns the plan of these tools; raises ``InvalidInput`` if a strict tool's schema is not supported."""
    plan = plan_of(toolbox, target.dialect)
    if not needs_grammar(toolbox):
        return plan
    format = plan.dialect.format
    marks = marks_of(format, target.prompts.tokenizer)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            loop = asyncio.get_running_loop()
            return replace(plan, grammar=await loop.run_in_executor(_threads, _grammar, toolbox, format, marks))
    except TimeoutError:
        raise Overloaded(retry_after_s=1.0) from None


def _grammar(toolbox: Toolbox, format: CallFormat, marks: Mapping[str, int]) -> Grammar:
    """Returns the grammar of the calls, once it compiles. A schema that is not supported is widened to any object,
    unless its tool is strict."""
    is_required = toolbox.choice.mode is CallMode.REQUIRED
    schemas: dict[str, Schema] = {}
    until = time.thread_time() + _MAX_COMPILING_S
    for tool in toolbox.offered:
        if time.thread_time() > until:
            raise InvalidInput("The schemas of the tools take too long to compile.", param="tools")
        schemas[tool.name] = _schema(tool, is_required=is_required)

    def schema(tool: Tool) -> Schema:
        return schemas[tool.name]

    # Compiled without control tokens, which the checking tokenizer does not have.
    if problem := _check().problem(call_grammar(toolbox, format, {}, schema)):
        raise InvalidInput(f"The tools' schemas are not supported together: {problem}", param="tools")
    return call_grammar(toolbox, format, marks, schema)


def _schema(tool: Tool, *, is_required: bool) -> Schema:
    if not (tool.strict or is_required):
        return ANY
    schema = schema_of(tool)
    try:
        if len(tool.parameters) > MAX_BYTES:
            raise SchemaRefused(f"it has {len(tool.parameters)} bytes, and may have {MAX_BYTES}")
        check_schema(schema)
        problem = _check().problem(schema_grammar(schema))
    except SchemaRefused as error:
        problem = error.message
    if problem and tool.strict:
        message = f"The schema of the strict tool '{tool.name}' is not supported: {problem}"
        raise InvalidInput(message, param="tools", code="invalid_schema")
    return ANY if problem else schema
