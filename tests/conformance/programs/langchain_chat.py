"""What a LangChain program does: ask, stream, count, batch, and be told what is wrong."""

import os
import sys

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI

common = {"base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "model": "echo", "max_retries": 0}
messages = [SystemMessage("You repeat."), HumanMessage("What is the capital of France?")]

chat = ChatOpenAI(**common, temperature=0, timeout=60)
whole = chat.invoke(messages)
assert "What is the capital of France?" in whole.content, whole
assert whole.response_metadata["finish_reason"] == "stop", whole
assert whole.usage_metadata["total_tokens"] > 0, whole

streaming = ChatOpenAI(**common, temperature=0, stream_usage=True)
pieces = list(streaming.stream(messages))
assert "".join(piece.content for piece in pieces) == whole.content
total = pieces[0]
for piece in pieces[1:]:
    total += piece
assert total.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"], total

answers = chat.batch([[HumanMessage(f"number {number}")] for number in range(8)])
assert all(f"number {number}" in answer.content for number, answer in enumerate(answers))

scored = chat.bind(logprobs=True, top_logprobs=1, max_tokens=3).invoke(messages)
assert len(scored.response_metadata["logprobs"]["content"]) == 3, scored

assert OpenAI(**common, temperature=0, max_tokens=5).invoke("to be or not") == "to be"

try:
    chat.invoke([HumanMessage("x" * 100_000)])
except ContextOverflowError:
    pass
else:
    sys.exit("a prompt without end was taken")
print("ok")
