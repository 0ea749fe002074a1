"""What an instructor program does: a typed answer through a tool that the model must call."""

import os

import instructor
import openai
from pydantic import BaseModel


class City(BaseModel):
    """A city."""

    city: str


client = instructor.from_openai(
    openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0),
    mode=instructor.Mode.TOOLS,
)
asked = {"model": "echo", "messages": [{"role": "user", "content": "a City, please"}], "max_retries": 0}
assert client.chat.completions.create(**asked, response_model=City).city == "Rome"
print("ok")
