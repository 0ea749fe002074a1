"""What LiteLLM does with embeddings: vectors, their usage, and what is wrong as its own errors."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would look for prices on the internet first

import litellm

common = {"model": f"openai/{os.environ['MODEL']}", "api_base": os.environ["BASE_URL"]}
common |= {"api_key": os.environ["API_KEY"], "max_retries": 0}

found = litellm.embedding(**common, input=["A cat sleeps.", "A dog barks."])
assert [len(each["embedding"]) for each in found.data] == [384, 384]
assert found.usage.prompt_tokens == found.usage.total_tokens == 13, found.usage

try:
    litellm.embedding(**common, input=["word " * 600])
except litellm.ContextWindowExceededError:
    print("ok")
