"""Requests of the small routes, almost right: vectors, scores, tokens, Ollama's, batches. See ``near_valid``."""

from typing import Any

from hypothesis import strategies as st

from tests.conformance.near_valid import calls, fields, flat_tools, functions, junk, messages, schemas, text

Json = Any
_MODEL = st.just("echo")
_NAME = st.sampled_from(["echo", "echo:latest"])
_IDS = st.lists(st.sampled_from([0, 1, 104, 255, 256, 10**6, -1]), max_size=4)
word = st.sampled_from(["hi", "a cat", "zwei Hunde", "é😀"])
options = st.dictionaries(
    st.sampled_from(["num_predict", "temperature", "stop", "seed", "num_ctx", "top_k", "mirostat", "x"]),
    junk | st.sampled_from([1, 4, 0.5, ["a"]]),
    max_size=3,
)
_OLLAMA = {
    "stream": st.booleans(),
    "options": st.just({"num_predict": 4}) | options,
    "format": st.just("json") | schemas,
    "think": st.booleans() | st.just("high"),
    "keep_alive": st.sampled_from([0, -1, "5m", "x"]),
}
_CALLED = st.lists(
    st.builds(lambda given: {"function": {"name": "f", "arguments": given}}, st.sampled_from([{}, {"a": 1}, None])),
    max_size=2,
)
_OLLAMA_MESSAGES = st.lists(
    fields(
        {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": text},
        tool_calls=_CALLED | calls,
        images=st.just(["aGk="]),
        thinking=text,
        tool_name=text,
    ),
    min_size=1,
    max_size=3,
)
_TOKENS = {"add_special_tokens": st.booleans(), "return_token_strs": st.booleans()}
FILE = "file-of-the-test"
"""Stands for the id of a file that is there."""
OPERATIONS: dict[str, st.SearchStrategy[Json]] = {
    "/tokenize": fields({"model": _MODEL, "prompt": text}, **_TOKENS)
    | fields(
        {"model": _MODEL, "messages": messages},
        tools=st.lists(functions.map(lambda each: {"type": "function", "function": each}), max_size=2),
        **_TOKENS,
    ),
    "/detokenize": fields({"model": _MODEL, "tokens": _IDS}),
    "/api/chat": fields({"model": _NAME, "messages": _OLLAMA_MESSAGES}, tools=flat_tools, **_OLLAMA),
    "/api/generate": fields({"model": _NAME, "prompt": text}, system=text, raw=st.booleans(), suffix=text, **_OLLAMA),
    "/api/show": fields({}, model=_NAME, name=_NAME, verbose=st.booleans()),
    "/v1/batches": fields(
        {
            "input_file_id": st.sampled_from([FILE, FILE, FILE, "file-1"]),
            "endpoint": st.sampled_from(["/v1/completions", "/v1/completions", "/v1/embeddings", "/v1/x"]),
            "completion_window": st.sampled_from(["24h", "24h", "24h", "1h"]),
        },
        metadata=st.dictionaries(text, text | junk, max_size=3),
        output_expires_after=st.sampled_from([{"anchor": "created_at", "seconds": 3600}, {}]),
    ),
}
PROFILE: st.SearchStrategy[Json] = fields(
    {
        "kind": st.sampled_from(["cpu", "memory", "steps"]),
        "seconds": st.sampled_from([0.1, 0.1, 0.1, 0, -1, 61, 1e300]),
    },
    process=st.sampled_from(["", "engine", "gateway", "echo", "x" * 300]),
    format=st.sampled_from(["svg", "folded", "speedscope", "chrome", "json", None]),
    weight=st.sampled_from(["cpu", "wall"]),
)
"""Of /v1/admin/profiles, which records for as long as it is asked to."""
_LANE = st.sampled_from(["a", "b", "", "x" * 200])
_AFTER = st.sampled_from([-1, 0, 41, "41", 10**12])
_ID = st.sampled_from(["resp_1", "", "x" * 100])
_CREATE = {"type": st.just("response.create"), "model": _MODEL, "input": word, "max_output_tokens": st.just(2)}
EVENTS: st.SearchStrategy[Json] = (
    fields(_CREATE, stream_id=_LANE, idempotency_key=word)
    | fields(_CREATE, stream_id=_LANE, stream=st.booleans(), background=st.booleans(), response_id=_ID)
    | fields(
        {"type": st.sampled_from(["response.retrieve", "response.cancel", "response.steer", "x"])},
        response_id=_ID,
        starting_after=_AFTER,
        stream_id=_LANE,
        input=text,
    )
)
"""Messages of a WebSocket."""
