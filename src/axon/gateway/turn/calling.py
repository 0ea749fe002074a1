"""The plan of a request's tool calls for the version that answers it, with a grammar that was tried. Knows no API."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from axon.domain.tool import CallMode, Tool, Toolbox
from axon.errors import InvalidInput
from axon.gateway.turn.target import Target
from axon.text.grammar import Grammar, schema_grammar
from axon.text.grammar_check import GrammarCheck
from axon.text.schema_bounds import SchemaRefused, check_schema, check_schemas
from axon.text.tools.formats import CallFormat, marks_of
from axon.text.tools.grammar import ANY, Schema, call_grammar, needs_grammar, schema_of
from axon.text.tools.plan import CallPlan, plan_of

_MAX_TRIED = 32
"""Tools whose schemas are compiled one by one to find which of them is not supported."""
_check = cache(GrammarCheck)


async def planned(toolbox: Toolbox, target: Target) -> CallPlan:
    """Returns the plan of these tools; raises ``InvalidInput`` if a strict tool's schema is not supported."""
    plan = plan_of(toolbox, target.dialect)
    if not needs_grammar(toolbox):
        return plan
    format = plan.dialect.format
    marks = marks_of(format, target.prompts.tokenizer)
    return replace(plan, grammar=await asyncio.to_thread(_grammar, toolbox, format, marks))


def _grammar(toolbox: Toolbox, format: CallFormat, marks: Mapping[str, int]) -> Grammar:
    """Returns the grammar of the calls, once it compiles. A schema that is not supported is widened to any object,
    unless its tool is strict."""
    is_required = toolbox.choice.mode is CallMode.REQUIRED
    schemas = {tool.name: schema_of(tool) if tool.strict or is_required else ANY for tool in toolbox.offered}
    problem = _problem(toolbox, format, schemas)
    if problem:
        schemas = _supported(toolbox.offered, schemas, problem)
        problem = _problem(toolbox, format, schemas)
    if problem:
        raise InvalidInput(f"The tools' schemas are not supported together: {problem}", param="tools")
    return call_grammar(toolbox, format, marks, lambda tool: schemas[tool.name])


def _problem(toolbox: Toolbox, format: CallFormat, schemas: Mapping[str, Schema]) -> str:
    """Returns why the calls cannot be constrained to these schemas, by the tools' names; empty if they can."""
    try:
        check_schemas(schemas.values())
    except SchemaRefused as error:
        return error.message
    # Compiled without control tokens, which the checking tokenizer does not have.
    return _check().problem(call_grammar(toolbox, format, {}, lambda tool: schemas[tool.name]))


def _supported(tools: Sequence[Tool], schemas: Mapping[str, Schema], problem: str) -> dict[str, Schema]:
    """Returns the schemas with those widened that are not supported; raises ``InvalidInput`` if such a tool is strict.

    More than ``_MAX_TRIED`` tools are not told apart, because each would have to be compiled for itself.
    """
    tried = [tool for tool in tools if schemas[tool.name] is not ANY]
    if len(tried) > _MAX_TRIED and any(tool.strict for tool in tried):
        raise InvalidInput(
            f"The schemas of the {len(tried)} tools are not supported together: {problem}",
            param="tools",
            code="invalid_schema",
        )
    if len(tried) > _MAX_TRIED:
        return {tool.name: ANY for tool in tools}
    return {**schemas, **{tool.name: _widened(tool, schemas[tool.name]) for tool in tried}}


def _widened(tool: Tool, schema: Schema) -> Schema:
    try:
        check_schema(schema)
        problem = _check().problem(schema_grammar(schema))
    except SchemaRefused as error:
        problem = error.message
    if problem and tool.strict:
        message = f"The schema of the strict tool '{tool.name}' is not supported: {problem}"
        raise InvalidInput(message, param="tools", code="invalid_schema")
    return ANY if problem else schema
