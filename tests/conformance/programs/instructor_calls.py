"""What an instructor program does with a real model: a typed answer by each of the ways that a server constrains."""

import os
from typing import Literal

import instructor
import openai
from pydantic import BaseModel, Field


class Journey(BaseModel, extra="forbid"):
    """A journey."""

    city: Literal["Paris", "Rome"]
    days: int = Field(ge=1, le=9)


api = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0)
messages = [{"role": "user", "content": "I want to see the Colosseum for 3 days."}]
asked = {"model": os.environ["MODEL"], "messages": messages, "max_retries": 0, "max_tokens": 200, "temperature": 0}
for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA):
    client = instructor.from_openai(api, mode=mode)
    found = client.chat.completions.create(**asked, response_model=Journey)
    assert isinstance(found, Journey), (mode, found)
print("ok")
