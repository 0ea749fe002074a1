"""A choice of one function by name: OpenAI's API answers it with exactly one call."""

from typing import Any

from axon.domain.content.tool import CallMode, Toolbox
from axon.gateway.openai.tools import ChatTool, ChatToolChoice, chat_toolbox
from axon.gateway.responses.tools import ResponseTool, ResponseToolChoice, response_toolbox
from axon.text.tools.formats import CallFormat
from axon.text.tools.grammar import call_grammar
from axon.text.tools.plan import plan_of
from axon.text.tools.prompt import Dialect

NAMES = ("book", "plan")


def chat(choice: Any) -> Toolbox:
    tools = [ChatTool.model_validate({"type": "function", "function": {"name": name}}) for name in NAMES]
    given: Any = choice if isinstance(choice, str) else ChatToolChoice.model_validate(choice)
    return chat_toolbox(tools, given, None)


def response(choice: Any) -> Toolbox:
    tools = [ResponseTool.model_validate({"type": "function", "name": name}) for name in NAMES]
    return response_toolbox(tools, ResponseToolChoice.model_validate(choice), None)


def test_a_named_function_is_called_once() -> None:
    boxes = [
        chat({"type": "function", "function": {"name": "book"}}),
        response({"type": "function", "name": "book"}),
    ]
    for box in boxes:
        assert (box.choice.mode, box.choice.names, box.choice.parallel) == (CallMode.REQUIRED, ("book",), False)
        assert plan_of(box, Dialect()).max_calls == 1
        assert "call)*" not in str(call_grammar(box, CallFormat.HERMES, {}))


def test_required_and_allowed_functions_may_be_called_several_times() -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "name": "book"}]}
    for box in (chat("required"), response({"type": "allowed_tools", **allowed})):
        assert box.choice.parallel
        assert plan_of(box, Dialect()).max_calls == 0
