"""The fields of requests for vectors, classes and scores, and what this server does with them. Knows no HTTP."""

from axon.gateway.directive import Directives, hint, honoured, refused

_USER = hint("names the end user; nothing depends on it")
_REQUEST_ID = hint("send the header `x-request-id`")
_PRIORITY = refused(0, note="use `service_tier`")
_VECTORS = "a vector has no text"

EMBEDDINGS = Directives(
    "POST /v1/embeddings",
    {
        **honoured("model input encoding_format dimensions truncate_prompt_tokens prompt_name service_tier"),
        "user": _USER,
        "safety_identifier": _USER,
        "metadata": hint("kept with responses and conversations only"),
        "request_id": _REQUEST_ID,
        "rid": _REQUEST_ID,
        "add_special_tokens": refused(True, note="texts get the model's special tokens, token ids are taken as given"),
        "priority": _PRIORITY,
        "cache_salt": refused(note="vectors are not cached"),
        "truncate": refused(False, "NONE", note="use `truncate_prompt_tokens`"),
        "truncation_side": refused("right", note="inputs are cut at their end"),
        "input_type": refused(note="use `prompt_name`"),
        "task": refused(note="use `prompt_name`"),
        "normalize": refused(True, note="vectors are scaled as the model's configuration says"),
        "normalized": refused(True, note="vectors are scaled as the model's configuration says"),
        "use_activation": refused(True, note="vectors are scaled as the model's configuration says"),
        "embed_dtype": refused("float32"),
        "embedding_types": refused(["float"], note="use `encoding_format`"),
        "output_dtype": refused("float", note="use `encoding_format`"),
        "endianness": refused("native", "little"),
        "late_chunking": refused(False),
        "messages": refused(note="use `input`"),
        "chat_template": refused(),
        "chat_template_kwargs": refused({}),
        "mm_processor_kwargs": refused({}),
        "prompt": refused(note="use `input`"),
        "texts": refused(note="use `input`"),
        "images": refused([]),
        "store": refused(False, note="vectors are not kept"),
        "stream": refused(False, note="vectors come all at once"),
        "n": refused(1, note=_VECTORS),
        "max_tokens": refused(note=_VECTORS),
        "temperature": refused(note=_VECTORS),
        "logprobs": refused(False, note=_VECTORS),
        "tools": refused([], note=_VECTORS),
    },
)

_CLASSES = "a class has no text"

CLASSIFY = Directives(
    "POST /v1/classify",
    {
        **honoured("model input truncate_prompt_tokens use_activation service_tier"),
        "user": _USER,
        "request_id": _REQUEST_ID,
        "priority": _PRIORITY,
        "cache_salt": refused(note="classes are not cached"),
        "add_special_tokens": refused(True, note="texts get the model's special tokens, token ids are taken as given"),
        "activation": refused(True, note="use `use_activation`"),
        "truncation_side": refused("right", note="inputs are cut at their end"),
        "messages": refused(note="use `input`"),
        "chat_template": refused(),
        "chat_template_kwargs": refused({}),
        "mm_processor_kwargs": refused({}),
        "dimensions": refused(note="a class has no vector"),
        "encoding_format": refused("float", note="probabilities are numbers"),
        "stream": refused(False, note="classes come all at once"),
        "n": refused(1, note=_CLASSES),
        "max_tokens": refused(note=_CLASSES),
        "temperature": refused(note=_CLASSES),
    },
)

_COMPARED = {
    **honoured("model truncate_prompt_tokens use_activation service_tier"),
    "user": _USER,
    "request_id": _REQUEST_ID,
    "priority": _PRIORITY,
    "cache_salt": refused(note="vectors are not cached"),
    "activation": refused(True, note="use `use_activation`"),
    "mm_processor_kwargs": refused({}),
    "stream": refused(False, note="scores come all at once"),
}

RERANK = Directives(
    "POST /v1/rerank",
    {
        **_COMPARED,
        **honoured("query documents top_n return_documents"),
        "rank_fields": refused([], note="documents are texts"),
        "max_chunks_per_doc": refused(1, note="a document has one score"),
        "max_tokens_per_doc": refused(note="use `truncate_prompt_tokens`"),
        "texts": refused(note="use `documents`"),
        "raw_scores": refused(False, note="use `use_activation`"),
    },
)

SCORE = Directives(
    "POST /v1/score",
    {
        **_COMPARED,
        **honoured("text_1 text_2"),
        "queries": refused(note="use `text_1`"),
        "documents": refused(note="use `text_2`"),
        "data_1": refused(note="use `text_1`"),
        "data_2": refused(note="use `text_2`"),
    },
)
