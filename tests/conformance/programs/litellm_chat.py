"""What LiteLLM does as a client: ask, stream, count, and map what is wrong to its own errors."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would look for prices on the internet first

import litellm

common = {"model": "openai/echo", "api_base": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"]}
messages = [{"role": "user", "content": "What is the capital of France?"}]


def refused(kind, **changes):
    try:
        litellm.completion(**{**common, "messages": messages, "max_retries": 0, **changes})
    except kind:
        return
    raise AssertionError(f"{changes} was not refused as {kind}")


whole = litellm.completion(**common, messages=messages, temperature=0)
text = whole.choices[0].message.content
assert "What is the capital of France?" in text, whole
assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens

chunks = list(
    litellm.completion(**common, messages=messages, temperature=0, stream=True, stream_options={"include_usage": True})
)
assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text
assert any(getattr(chunk, "usage", None) for chunk in chunks)
assert litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message.content == text

both = litellm.completion(**common, messages=messages, n=2, seed=5, temperature=1.0, max_tokens=9)
assert len(both.choices) == 2, both

hosted = litellm.completion(**{**common, "model": "hosted_vllm/echo"}, messages=messages, temperature=0)
assert hosted.choices[0].message.content == text

done = litellm.text_completion(**{**common, "model": "text-completion-openai/echo"}, prompt="to be", max_tokens=2)
assert done.choices[0].text == "to", done

refused(litellm.ContextWindowExceededError, messages=[{"role": "user", "content": "x" * 100_000}])
refused(litellm.AuthenticationError, api_key="wrong")
refused(litellm.NotFoundError, model="openai/nothing")
refused(litellm.BadRequestError, temperature=5)
print("ok")
