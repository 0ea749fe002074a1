"""What a LangChain program does with embeddings: documents, a query, and the nearest document."""

import os

from langchain_openai import OpenAIEmbeddings

# Without the last setting it would tokenise with OpenAI's tokenizer, whose ids mean nothing to another model.
common = {"base_url": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "max_retries": 0}
vectors = OpenAIEmbeddings(**common, model=os.environ["MODEL"], check_embedding_ctx_length=False)

documents = ["A cat sleeps on the sofa.", "The stock market fell today.", "He repairs old bicycles."]
found = vectors.embed_documents(documents)
assert [len(each) for each in found] == [384, 384, 384]
query = vectors.embed_query("Shares lost value on Wall Street.")
scores = [sum(left * right for left, right in zip(query, each, strict=True)) for each in found]
assert max(scores) == scores[1], scores
print("ok")
