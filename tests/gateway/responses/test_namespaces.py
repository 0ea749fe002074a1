"""Functions that a client groups under a namespace, as Codex does: what the model is told, and what comes back."""

import json
from typing import Any

import pytest

from axon.domain.content.item import Item
from axon.errors import InvalidInput, Unsupported
from axon.gateway.directives import RESPONSES
from axon.gateway.http.body import parse
from axon.gateway.responses.items import item_body, items_of, messages_of
from axon.gateway.responses.requests import ResponseRequest
from axon.gateway.responses.tools import tools_text

LOOK_UP = {
    "type": "function",
    "name": "look_up",
    "description": "Finds one.",
    "parameters": {"type": "object"},
    "strict": True,
}
CRM = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [LOOK_UP]}


def read(**fields: Any) -> ResponseRequest:
    return parse(ResponseRequest, json.dumps({"model": "m", "input": "hi", **fields}).encode(), RESPONSES.refused)


def test_the_model_is_told_of_each_function_under_the_name_of_its_namespace() -> None:
    plain = {"type": "function", "name": "look_up"}
    [tool, other] = read(tools=[CRM, plain]).toolbox.tools
    assert (tool.name, tool.description, tool.parameters) == (
        "crm.look_up",
        "Customers.\nFinds one.",
        '{"type":"object"}',
    )
    assert tool.strict
    assert other.name == "look_up"


def test_the_response_lists_a_namespace_as_it_was_sent() -> None:
    assert json.loads(tools_text(read(tools=[CRM]).tools)) == [CRM]


def test_a_call_says_its_namespace_apart_from_its_name() -> None:
    item = Item(type="function_call", id="fc_1", role="assistant", texts=("{}",), call_id="call_1", name="crm.look_up")
    assert item_body(item)["name"] == "look_up"
    assert item_body(item)["namespace"] == "crm"


def test_a_call_of_no_namespace_says_none() -> None:
    item = Item(type="function_call", id="fc_1", role="assistant", texts=("{}",), call_id="call_1", name="look_up")
    assert "namespace" not in item_body(item)


def test_a_call_that_comes_back_is_the_call_that_the_model_made() -> None:
    sent = {"type": "function_call", "call_id": "c", "namespace": "crm", "name": "look_up", "arguments": "{}"}
    given = read(input=[sent]).input
    assert given is not None
    items = items_of(given, now=0.0)
    message: Any = messages_of(None, items)[0]
    assert message["tool_calls"][0]["function"]["name"] == "crm.look_up"
    assert item_body(items[0])["namespace"] == "crm"


def test_a_namespaced_function_is_chosen_by_its_whole_name() -> None:
    box = read(tools=[CRM], tool_choice={"type": "function", "name": "crm.look_up"}).toolbox
    assert box.choice.names == ("crm.look_up",)


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([CRM, CRM], "tools.1.tools.0.name"),
        ([{**CRM, "tools": [{"type": "custom", "name": "x"}]}], "tools.0.tools.0.type"),
        ([{**CRM, "tools": [CRM]}], "tools.0.tools.0.type"),
        ([{**CRM, "tools": [{"type": "function"}]}], "tools.0.tools.0.name"),
        ([{**CRM, "tools": None}], "tools.0.tools"),
        ([{**CRM, "name": None}], "tools.0.name"),
        ([{**CRM, "tools": [{**LOOK_UP, "name": f"f{n}"} for n in range(128)]}, LOOK_UP], "tools"),
        ([{**CRM, "description": "x" * (1 << 19)}], "tools"),
    ],
)
def test_a_wrong_namespace_is_refused_by_its_place(tools: list[Any], param: str) -> None:
    with pytest.raises((InvalidInput, Unsupported)) as raised:
        _ = read(tools=tools).toolbox
    assert raised.value.param == param
