"""A response in the background: asked for now, read later, by whoever knows its id.

pip install openai
AXON_API_KEY=axk_… python examples/background.py "Tell me a long story."
"""

import os
import sys
import time

from openai import OpenAI

key = os.environ.get("AXON_API_KEY") or sys.exit("Set AXON_API_KEY to a key; .venv/bin/axon keys create makes one.")
client = OpenAI(base_url=os.environ.get("AXON_URL", "http://127.0.0.1:8000") + "/v1", api_key=key)
response = client.responses.create(
    model=client.models.list().data[0].id,
    input=" ".join(sys.argv[1:]) or "Tell me a long story.",
    max_output_tokens=200,
    background=True,
)
print(f"{response.id} is {response.status}")
while response.status in ("queued", "in_progress"):
    time.sleep(0.2)
    response = client.responses.retrieve(response.id)
print(f"{response.id} is {response.status}:\n{response.output_text}")
