"""What a LangChain program does that needs an answer in a form: structured output each way, and tools it must call."""

import os
from typing import Literal

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field


class Journey(BaseModel, extra="forbid"):
    """A journey."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


class Plan(BaseModel, extra="forbid"):
    """A plan."""

    city: Literal["Paris", "Rome"]


common = {"base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "model": os.environ["MODEL"]}
asked = [HumanMessage("I want to see the Colosseum for 3 days.")]
for is_responses in (False, True):
    chat = ChatOpenAI(**common, max_retries=0, temperature=0, max_tokens=200, use_responses_api=is_responses)
    for method, strict in (("json_schema", True), ("function_calling", True), ("function_calling", False)):
        found = chat.with_structured_output(Journey, method=method, strict=strict).invoke(asked)
        assert isinstance(found, Journey), (is_responses, method, strict, found)
    for choice, strict, names in (("Plan", False, {"Plan"}), ("required", True, {"Plan", "Journey"})):
        model = chat.bind_tools([Journey, Plan], tool_choice=choice, strict=strict, parallel_tool_calls=False)
        [call] = model.invoke(asked).tool_calls
        assert call["name"] in names, (is_responses, call)
        {"Plan": Plan, "Journey": Journey}[call["name"]].model_validate(call["args"])
print("ok")
