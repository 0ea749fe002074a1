"""What a Pydantic AI program does with a real model: a typed answer by a tool and by the server's own schemas."""

import os
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Journey(BaseModel, extra="forbid"):
    """A journey."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


provider = OpenAIProvider(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"])
settings = {"max_tokens": 200, "temperature": 0.0}
for kind in (OpenAIChatModel, OpenAIResponsesModel):
    model = kind(os.environ["MODEL"], provider=provider)
    for output in (ToolOutput(Journey, strict=True), ToolOutput(Journey), NativeOutput(Journey, strict=True)):
        agent = Agent(model, output_type=output, model_settings=settings, retries=0)
        found = agent.run_sync("I want to see the Colosseum for 3 days.").output
        assert isinstance(found, Journey), (kind, output, found)
print("ok")
