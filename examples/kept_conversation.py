"""A conversation that the server keeps: each question is sent alone, and the answer knows what was said before.

pip install openai
AXON_API_KEY=axk_… python examples/kept_conversation.py "What is the capital of France?" "Which river flows through it?"
"""

import os
import sys

from openai import OpenAI

key = os.environ.get("AXON_API_KEY") or sys.exit("Set AXON_API_KEY to a key; .venv/bin/axon keys create makes one.")
client = OpenAI(base_url=os.environ.get("AXON_URL", "http://127.0.0.1:8000") + "/v1", api_key=key)
model = client.models.list().data[0].id
conversation = client.conversations.create()
for question in sys.argv[1:] or ["What is the capital of France?", "Which river flows through it?"]:
    answer = client.responses.create(
        model=model, input=question, conversation=conversation.id, max_output_tokens=100, temperature=0
    )
    print(f"> {question}\n{answer.output_text}")
num_items = len(list(client.conversations.items.list(conversation.id)))
client.conversations.delete(conversation.id)
print(f"The server kept {num_items} items, and has forgotten them now.")
