"""The tools that a model may call, by the request's choice."""

import pytest

from axon.domain.content.tool import CallMode, Tool, Toolbox, ToolChoice

LOOK, SEND = Tool(name="look"), Tool(name="send")


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        (ToolChoice(), (LOOK, SEND)),
        (ToolChoice(mode=CallMode.REQUIRED), (LOOK, SEND)),
        (ToolChoice(mode=CallMode.NONE), ()),
        (ToolChoice(names=("send",)), (SEND,)),
        (ToolChoice(mode=CallMode.NONE, names=("send",)), ()),
    ],
)
def test_only_allowed_tools_are_offered(choice: ToolChoice, offered: tuple[Tool, ...]) -> None:
    assert Toolbox(tools=(LOOK, SEND), choice=choice).offered == offered
