"""The plan of a request's tool calls for the version that answers it, with a grammar that was tried. Knows no API."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from axon.domain.tool import CallMode, Tool, Toolbox
from axon.errors import InvalidInput
from axon.gateway.turn.target import Target
from axon.text.grammar import Grammar, schema_grammar
from axon.text.grammar_check import GrammarCheck
from axon.text.schema_bounds import SchemaRefused, check_schema
from axon.text.tools.formats import CallFormat, marks_of
from axon.text.tools.grammar import ANY, Schema, call_grammar, needs_grammar, schema_of
from axon.text.tools.plan import CallPlan, plan_of

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
    schemas = {tool.name: _schema(tool, is_required=is_required) for tool in toolbox.offered}

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
        check_schema(schema)
        problem = _check().problem(schema_grammar(schema))
    except SchemaRefused as error:
        problem = error.message
    if problem and tool.strict:
        message = f"The schema of the strict tool '{tool.name}' is not supported: {problem}"
        raise InvalidInput(message, param="tools", code="invalid_schema")
    return ANY if problem else schema
