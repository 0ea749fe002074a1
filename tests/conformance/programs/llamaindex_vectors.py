"""What a LlamaIndex program does with embeddings: an index in memory, and the nearest document, in both its ways."""

import asyncio
import os

from llama_index.core import Document, VectorStoreIndex
from llama_index.embeddings.openai_like import OpenAILikeEmbedding

common = {"api_base": os.environ["BASE_URL"], "api_key": os.environ["API_KEY"], "max_retries": 0}
vectors = OpenAILikeEmbedding(**common, model_name=os.environ["MODEL"], embed_batch_size=2)

texts = ["A cat sleeps on the sofa.", "The stock market fell today.", "He repairs old bicycles."]
index = VectorStoreIndex.from_documents([Document(text=each) for each in texts], embed_model=vectors)
[best] = index.as_retriever(similarity_top_k=1).retrieve("Shares lost value on Wall Street.")
assert best.text == texts[1], best.text

found = vectors.get_text_embedding_batch(texts)
assert [len(each) for each in found] == [384, 384, 384]
later = asyncio.run(vectors.aget_query_embedding(texts[0]))
assert vectors.similarity(later, found[0]) > 0.999
print("ok")
