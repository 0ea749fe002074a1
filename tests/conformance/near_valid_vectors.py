"""Requests for vectors, classes and scores: valid ones, and such that a few values are wrong in."""

from typing import NamedTuple

from hypothesis import strategies as st

from tests.conformance.near_valid import Json, fields

_MODEL = st.just("vectors")
_text = st.sampled_from(["hi", "a cat sat", "é😀", "<|im_end|>", "[SEP]", "x" * 200, " ", "\u0000"])
_ids = st.lists(st.integers(0, 260), min_size=1, max_size=4)
_input = _text | st.lists(_text, min_size=1, max_size=3) | _ids | st.lists(_ids, min_size=1, max_size=3)
_texts = _text | st.lists(_text, min_size=1, max_size=3)
_tier = st.sampled_from(["auto", "default", "flex", "priority"])
_truncate = st.sampled_from([-1, 1, 2, 3, 128, 129])
_shared = {"service_tier": _tier, "truncate_prompt_tokens": _truncate, "user": _text}
_activation = {"use_activation": st.booleans()}

_EMBEDDINGS = fields(
    {"model": _MODEL, "input": _input},
    **_shared,
    encoding_format=st.sampled_from(["float", "base64"]),
    dimensions=st.sampled_from([8, 4]),
    prompt_name=st.just("query"),
)
_CLASSIFY = fields({"model": _MODEL, "input": _input}, **_shared, **_activation)
_RERANK = fields(
    {"model": _MODEL, "query": _text, "documents": st.lists(_text, min_size=1, max_size=3)},
    **_shared,
    **_activation,
    top_n=st.sampled_from([1, 2]),
    return_documents=st.booleans(),
)
_SCORE = fields({"model": _MODEL, "text_1": _texts, "text_2": _texts}, **_shared, **_activation)
_OLLAMA = fields(
    {"model": _MODEL, "input": _texts}, truncate=st.booleans(), keep_alive=st.just("5m"), dimensions=st.just(8)
)


class Operation(NamedTuple):
    """A route, and what the model is that answers it."""

    model: str
    """``dimensions`` for an embedding model, ``classes`` for a classifier; the setting of the echo engine."""
    size: int
    path: str
    body: st.SearchStrategy[Json]


OPERATIONS = [
    Operation("dimensions", 8, "/v1/embeddings", _EMBEDDINGS),
    Operation("dimensions", 8, "/v1/rerank", _RERANK),
    Operation("dimensions", 8, "/v1/score", _SCORE),
    Operation("dimensions", 8, "/api/embed", _OLLAMA),
    Operation("classes", 3, "/v1/classify", _CLASSIFY),
    Operation("classes", 1, "/v1/classify", _CLASSIFY),
    Operation("classes", 1, "/v1/rerank", _RERANK),
    Operation("classes", 1, "/v1/score", _SCORE),
]
