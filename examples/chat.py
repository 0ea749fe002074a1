"""A streamed chat with the official OpenAI client, unmodified.

pip install openai
AXON_API_KEY=axk_… python examples/chat.py "What is the capital of France?"
"""

import os
import sys

from openai import OpenAI

key = os.environ.get("AXON_API_KEY") or sys.exit("Set AXON_API_KEY to a key; .venv/bin/axon keys create makes one.")
client = OpenAI(base_url=os.environ.get("AXON_URL", "http://127.0.0.1:8000") + "/v1", api_key=key)
question = " ".join(sys.argv[1:]) or "What is the capital of France?"
stream = client.chat.completions.create(
    model=client.models.list().data[0].id,
    messages=[{"role": "user", "content": question}],
    max_tokens=200,
    stream=True,
)
for event in stream:
    print(event.choices[0].delta.content or "", end="", flush=True)
print()
