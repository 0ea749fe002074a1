"""What a LangChain agent does: bind tools, call them, send their results, and read a structured answer."""

import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 2{len(city)} degrees"


@tool
def book(city: str) -> str:
    """Books a journey."""
    return f"booked: {city}"


class City(BaseModel):
    """A city."""

    city: str


common = {"base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "model": "echo", "max_retries": 0}
tools = {"get_weather": get_weather, "book": book}
agent = ChatOpenAI(**common, temperature=0).bind_tools(list(tools.values()))

messages = [HumanMessage("book the warmer of Paris and Rome")]
made = []
while True:
    answer = agent.invoke(messages)
    messages.append(answer)
    if not answer.tool_calls:
        break
    made.append([call["name"] for call in answer.tool_calls])
    for call in answer.tool_calls:
        messages.append(ToolMessage(tools[call["name"]].invoke(call["args"]), tool_call_id=call["id"]))
assert answer.content == "Rome is booked.", answer
assert made == [["get_weather", "get_weather"], ["book"]], made

total = None
for piece in agent.stream(messages[:1]):
    total = piece if total is None else total + piece
assert [call["args"] for call in total.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}], total

chat = ChatOpenAI(**common, temperature=0)
forced = chat.with_structured_output(City, method="function_calling", strict=False)
assert forced.invoke("a City, please") == City(city="Rome")


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


both = chat.bind_tools([get_weather], response_format=Weather, strict=True)  # as an agent with a response format does
messages = [HumanMessage("the weather in Bern")]
first = both.invoke(messages)
[call] = first.tool_calls
messages += [first, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])]
assert both.invoke(messages).additional_kwargs["parsed"] == Weather(city="Bern", degrees=24)
print("ok")
