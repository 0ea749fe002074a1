"""What a Pydantic AI agent does: run tools in a loop until it can answer, and return a typed answer."""

import os

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])


class City(BaseModel):
    """A city."""

    city: str


called = []
for model in (OpenAIChatModel("echo", provider=provider), OpenAIResponsesModel("echo", provider=provider)):
    agent = Agent(model)
    called.clear()

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        called.append(city)
        return f"{city}: 2{len(city)} degrees"

    @agent.tool_plain
    def book(city: str) -> str:
        """Books a journey."""
        called.append(f"book {city}")
        return f"booked: {city}"

    done = agent.run_sync("book the warmer of Paris and Rome")
    assert done.output == "Rome is booked.", done
    assert sorted(called) == ["Paris", "Rome", "book Rome"], called

typed = Agent(OpenAIChatModel("echo", provider=provider), output_type=City)
assert typed.run_sync("a City, please").output == City(city="Rome")


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


for model in (OpenAIChatModel("echo", provider=provider), OpenAIResponsesModel("echo", provider=provider)):
    both = Agent(model, output_type=NativeOutput(Weather), tools=[get_weather])  # tools together with a schema
    assert both.run_sync("the weather in Bern").output == Weather(city="Bern", degrees=24)
print("ok")
