"""A stream that is cut again and again, and loses nothing: each event's number says where to go on.

pip install openai
AXON_API_KEY=axk_… python examples/resumed_stream.py "What is the capital of France?"
"""

import os
import sys

from openai import OpenAI

key = os.environ.get("AXON_API_KEY") or sys.exit("Set AXON_API_KEY to a key; .venv/bin/axon keys create makes one.")
client = OpenAI(base_url=os.environ.get("AXON_URL", "http://127.0.0.1:8000") + "/v1", api_key=key)
stream = client.responses.create(
    model=client.models.list().data[0].id,
    input=" ".join(sys.argv[1:]) or "What is the capital of France?",
    max_output_tokens=100,
    background=True,
    stream=True,
)
response_id, number, num_cuts, ended = "", -1, 0, False
while not ended:
    for event in stream:
        assert event.sequence_number == number + 1, "an event is missing"
        number = event.sequence_number
        if event.type == "response.created":
            response_id = event.response.id
        if event.type == "response.output_text.delta":
            print(event.delta, end="", flush=True)
        ended = event.type in ("response.completed", "response.incomplete", "response.failed")
        if number % 10 == 9:
            break  # the train enters a tunnel
    stream.close()
    if not ended:
        num_cuts += 1
        stream = client.responses.retrieve(response_id, stream=True, starting_after=number)
print(f"\n{number + 1} events over {num_cuts + 1} connections")
