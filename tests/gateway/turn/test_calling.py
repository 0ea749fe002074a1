"""The plan of a request's tools: which grammar its answer follows, and that none is compiled twice."""

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from axon.domain.content.tool import CallMode, Tool, Toolbox, ToolChoice
from axon.domain.sampling import Sampling
from axon.errors import InvalidInput
from axon.gateway.turn.calling import planned
from axon.sessions.grammars import Grammars, TenantGrammars
from axon.text.grammar import json_object_grammar
from axon.text.tokenizer import ByteTokenizer
from axon.text.tools.plan import CallPlan
from axon.text.tools.prompt import PLAIN
from tests.sessions.in_process import InProcess

CITY = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
STRICT, FREE = Tool(name="get_weather", parameters=CITY, strict=True), Tool(name="now", parameters=CITY)
ODD = json.dumps({"type": "object", "not": {}})
TARGET: Any = SimpleNamespace(dialect=PLAIN, prompts=SimpleNamespace(tokenizer=ByteTokenizer()))
FORM = json_object_grammar()


@pytest.fixture
async def grammars() -> AsyncIterator[TenantGrammars]:
    found = Grammars(InProcess())
    yield found.of("a")
    await found.aclose()


async def plan(grammars: TenantGrammars, *tools: Tool, form: bool = False, **choice: Any) -> CallPlan:
    toolbox = Toolbox(tools=tools, choice=ToolChoice(**choice))
    return await planned(grammars, toolbox, TARGET, FORM if form else None)


async def test_a_form_without_tools_is_the_whole_grammar(grammars: TenantGrammars) -> None:
    for found in (await plan(grammars, form=True), await plan(grammars, STRICT, form=True, mode=CallMode.NONE)):
        assert (found.grammar, found.formed, found.call_format) == (FORM, False, "")


async def test_free_calls_are_bound_only_beside_a_form(grammars: TenantGrammars) -> None:
    assert (await plan(grammars, FREE)).grammar is None
    found = await plan(grammars, FREE, form=True)
    assert found.formed
    assert found.grammar is not None
    assert found.grammar.form == FORM.text
    assert '"required"' not in found.grammar.text, "only strict tools are held to their schemas"


@pytest.mark.parametrize("names", [(), ("get_weather",)])
async def test_a_required_call_needs_no_form(grammars: TenantGrammars, names: tuple[str, ...]) -> None:
    found = await plan(grammars, STRICT, FREE, form=True, mode=CallMode.REQUIRED, names=names)
    assert found.grammar is not None
    assert (found.formed, found.grammar.form) == (False, "")
    assert ("now" in found.grammar.text) == (not names)


async def test_allowed_tools_are_the_only_ones_beside_a_form(grammars: TenantGrammars) -> None:
    found = await plan(grammars, STRICT, FREE, form=True, names=("now",))
    assert [tool.name for tool in found.tools] == ["now"]
    assert found.grammar is not None
    assert "get_weather" not in found.grammar.text
    assert found.constrain(Sampling(max_tokens=9), "").grammar == found.grammar.after("")


async def test_an_unsupported_schema_is_refused_of_a_strict_tool_and_widened_of_another(
    grammars: TenantGrammars,
) -> None:
    with pytest.raises(InvalidInput, match="strict tool 'odd' is not supported") as raised:
        await plan(grammars, Tool(name="odd", parameters=ODD, strict=True))
    assert (raised.value.param, raised.value.code) == ("tools", "invalid_schema")
    found = await plan(grammars, Tool(name="odd", parameters=ODD), mode=CallMode.REQUIRED)
    assert found.grammar is not None
    assert '"not"' not in found.grammar.text


async def test_the_same_tools_are_compiled_once(grammars: TenantGrammars, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await plan(grammars, STRICT, FREE, form=True)
    monkeypatch.setattr(InProcess, "run", None)
    assert await plan(grammars, STRICT, FREE, form=True) == first
