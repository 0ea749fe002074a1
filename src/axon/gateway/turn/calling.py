"""The plan of a request's tool calls for the version that answers it, with a grammar that was tried. Knows no API."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from axon.domain.content.tool import CallMode, Tool, Toolbox
from axon.errors import InvalidInput
from axon.gateway.turn.target import Target
from axon.sessions.grammars import TenantGrammars
from axon.text.grammar import Grammar, schema_grammar
from axon.text.schema_bounds import SchemaRefused, check_schemas
from axon.text.tools.formats import CallFormat, marks_of
from axon.text.tools.grammar import ANY, Schema, call_grammar, needs_grammar, schema_of
from axon.text.tools.plan import CallPlan, plan_of


async def planned(grammars: TenantGrammars, toolbox: Toolbox, target: Target, form: Grammar | None = None) -> CallPlan:
    """Returns the plan of these tools; raises ``InvalidInput`` if a strict tool's schema is not supported.

    ``form`` is the grammar of the text that the request asks for. Where the model may call or not, its answer is
    either calls or text of this form; where it must call, there is no text.
    """
    plan = plan_of(toolbox, target.dialect)
    if not plan.tools:
        return replace(plan, grammar=form)
    if form is None and not needs_grammar(toolbox):
        return plan
    marks = marks_of(plan.dialect.format, target.prompts.tokenizer)
    grammar = await _grammar(grammars, toolbox, plan.dialect.format, marks, form)
    return replace(plan, grammar=grammar, formed=bool(grammar.form))


async def _grammar(
    grammars: TenantGrammars, toolbox: Toolbox, format: CallFormat, marks: Mapping[str, int], form: Grammar | None
) -> Grammar:
    """Returns the grammar of the calls, once it compiles. A schema that is not supported is widened to any object,
    unless its tool is strict."""
    schemas = await _schemas(grammars, toolbox)

    def schema_for(tool: Tool) -> Schema:
        return schemas[tool.name]

    # Compiled without control tokens, which the checking tokenizer does not have.
    bare = await asyncio.to_thread(call_grammar, toolbox, format, {}, schema_for, form)
    if problem := await grammars.problem(bare):
        raise InvalidInput(f"The tools' schemas are not supported together: {problem}", param="tools")
    return await asyncio.to_thread(call_grammar, toolbox, format, marks, schema_for, form) if marks else bare


async def _schemas(grammars: TenantGrammars, toolbox: Toolbox) -> dict[str, Schema]:
    """Returns the schema that the arguments of each tool are held to; raises if one of a strict tool cannot be."""
    is_required = toolbox.choice.mode is CallMode.REQUIRED
    bound = [tool for tool in toolbox.offered if tool.strict or is_required]
    schemas = {tool.name: ANY for tool in toolbox.offered}
    read = await asyncio.to_thread(_read, bound)
    problems = await grammars.problems([grammar for _, _, grammar in read], param="tools")
    for (tool, schema, _), problem in zip(read, problems, strict=True):
        if not problem:
            schemas[tool.name] = schema
        elif tool.strict:
            message = f"The schema of the strict tool '{tool.name}' is not supported: {problem}"
            raise InvalidInput(message, param="tools", code="invalid_schema")
    try:
        await asyncio.to_thread(check_schemas, [*schemas.values()])
    except SchemaRefused as error:
        if any(tool.strict for tool in bound):
            message = f"The tools' schemas are not supported together: {error.message}"
            raise InvalidInput(message, param="tools", code="invalid_schema") from None
        return {tool.name: ANY for tool in toolbox.offered}
    return schemas


def _read(tools: Sequence[Tool]) -> list[tuple[Tool, Schema, Grammar]]:
    """Returns the schema of each tool's arguments, and its grammar."""
    found = []
    for tool in tools:
        schema = schema_of(tool)
        found.append((tool, schema, schema_grammar(schema)))
    return found
