"""One table of every field that a known client or engine sends, and what this server does with it. Knows no HTTP.

No directive is dropped in silence: a field is honoured, refused by name, or a hint, which changes nothing by its
nature. ``docs/fields.md`` is written from this table. A field that is not in it, because no known client sends it, is
ignored.
"""

from axon.gateway.directive import Directives, hint, hints, honoured, refused
from axon.gateway.vector_directives import CLASSIFY, EMBEDDINGS, RERANK, SCORE

_ELSEWHERE = "a field of another route"
_FORM = "use `response_format` or `structured_outputs`"
_SAMPLING = "this sampling method is not implemented"
_USE_CALLS = "use `tools`"

_SHARED = {
    **honoured("model temperature top_p top_k min_p stop stop_token_ids ignore_eos min_tokens seed n stream"),
    **honoured("max_tokens presence_penalty frequency_penalty repetition_penalty logit_bias logprobs stream_options"),
    **honoured("store prompt_cache_key service_tier response_format structured_outputs"),
    **honoured("guided_json guided_regex guided_choice guided_grammar prompt_logprobs"),
    "user": hint("names the end user; nothing depends on it"),
    "safety_identifier": hint("names the end user; nothing depends on it"),
    "metadata": hint("kept with responses and conversations only"),
    "prompt_cache_retention": hint("prefixes stay cached while there is room"),
    "prompt_cache_options": hint("prefixes stay cached while there is room"),
    "cache_prompt": hint("prefixes are always cached"),
    "request_id": hint("send the header `x-request-id`"),
    "rid": hint("send the header `x-request-id`"),
    "spaces_between_special_tokens": hint("special tokens are not part of an answer's text"),
    "guided_decoding_backend": hint("there is only one backend"),
    "guided_whitespace_pattern": refused(note="JSON comes without white space"),
    "regex": refused(note=_FORM),
    "ebnf": refused(note=_FORM),
    "grammar": refused("", note=_FORM),
    "json_schema": refused(note=_FORM),
    "use_beam_search": refused(False, note=_SAMPLING),
    "length_penalty": refused(1, note="it belongs to beam search"),
    "early_stopping": refused(False, note="it belongs to beam search"),
    "bad_words": refused([], note="use `logit_bias` for single tokens"),
    "allowed_token_ids": refused([], note="use `structured_outputs`"),
    "return_token_ids": refused(False),
    "return_tokens_as_token_ids": refused(False),
    "include_stop_str_in_output": refused(False),
    "no_stop_trim": refused(False),
    "stop_regex": refused([], ""),
    "skip_special_tokens": refused(True, note="special tokens are not part of an answer's text"),
    "truncate_prompt_tokens": refused(note="a prompt that is too long is refused"),
    "logits_processors": refused([]),
    "custom_logit_processor": refused(),
    "priority": refused(0, note="use `service_tier`"),
    "cache_salt": refused(note="tenants share no cached prefix"),
    "kv_transfer_params": refused(),
    "vllm_xargs": refused({}),
    "lora_path": refused(),
    "mirostat": refused(0, note=_SAMPLING),
    "typical_p": refused(1, note=_SAMPLING),
    "tfs_z": refused(1, note=_SAMPLING),
    "top_a": refused(0, note=_SAMPLING),
    "dry_multiplier": refused(0, note=_SAMPLING),
    "xtc_probability": refused(0, note=_SAMPLING),
    "dynatemp_range": refused(0, note=_SAMPLING),
    "repeat_penalty": refused(1, note="use `repetition_penalty`"),
    "n_predict": refused(-1, note="use `max_tokens`"),
    "input": refused(note=_ELSEWHERE),
    "instructions": refused(note=_ELSEWHERE),
    "max_output_tokens": refused(note=_ELSEWHERE),
    "previous_response_id": refused(note=_ELSEWHERE),
    "conversation": refused(note=_ELSEWHERE),
    "background": refused(False, note=_ELSEWHERE),
    "text": refused(note=_ELSEWHERE),
}

CHAT = Directives(
    "POST /v1/chat/completions",
    {
        **_SHARED,
        **honoured("messages max_completion_tokens top_logprobs chat_template_kwargs reasoning_effort"),
        **honoured("tools tool_choice parallel_tool_calls"),
        "verbosity": hint(),
        "prediction": hint("guesses come from the prompt and the answer"),
        "functions": refused([], note=_USE_CALLS),
        "function_call": refused("none", "auto", note=_USE_CALLS),
        "modalities": refused(["text"]),
        "audio": refused(),
        "web_search_options": refused(),
        "include_reasoning": refused(True),
        "separate_reasoning": refused(True),
        "stream_reasoning": refused(True),
        "reasoning": refused({}, note="use `reasoning_effort`"),
        "thinking": refused(note='use `chat_template_kwargs`, e.g. `{"enable_thinking": false}`'),
        "enable_thinking": refused(note='use `chat_template_kwargs`, e.g. `{"enable_thinking": false}`'),
        "thinking_budget": refused(note="use `reasoning_effort`"),
        "thinking_token_budget": refused(note="use `reasoning_effort`"),
        "add_generation_prompt": refused(True),
        "continue_final_message": refused(False),
        "add_special_tokens": refused(False),
        "chat_template": refused(note="the model's own template is used"),
        "documents": refused([], note="put them into a message"),
        "mm_processor_kwargs": refused({}),
        "echo": refused(False, note=_ELSEWHERE),
        "best_of": refused(1, note=_ELSEWHERE),
        "prompt": refused(note=_ELSEWHERE),
        "suffix": refused("", note=_ELSEWHERE),
    },
)

COMPLETIONS = Directives(
    "POST /v1/completions",
    {
        **_SHARED,
        **honoured("prompt echo best_of"),
        "suffix": refused(""),
        "add_special_tokens": refused(True),
        "prompt_embeds": refused(),
        "messages": refused(note=_ELSEWHERE),
        "tools": refused([], note=_ELSEWHERE),
        "tool_choice": refused("none", "auto", note=_ELSEWHERE),
        "functions": refused([], note=_ELSEWHERE),
        "chat_template_kwargs": refused({}, note=_ELSEWHERE),
        "reasoning_effort": refused(note=_ELSEWHERE),
        "max_completion_tokens": refused(note="use `max_tokens`"),
        "top_logprobs": refused(0, note="use `logprobs`, which is a number here"),
    },
)

RESPONSES = Directives(
    "POST /v1/responses",
    {
        **honoured("model input instructions previous_response_id conversation truncation store background stream"),
        **honoured("metadata max_output_tokens temperature top_p include top_logprobs text reasoning"),
        **honoured("prompt_cache_key user safety_identifier service_tier seed ignore_eos chat_template_kwargs"),
        **honoured("tools tool_choice parallel_tool_calls"),
        "stream_options": hint("events are never padded"),
        "prompt_cache_retention": _SHARED["prompt_cache_retention"],
        "prompt_cache_options": _SHARED["prompt_cache_options"],
        "client_metadata": hint("names the client"),
        "request_id": _SHARED["request_id"],
        "max_tool_calls": refused(),
        "prompt": refused(note="stored prompts are not implemented"),
        "context_management": refused([]),
        "moderation": refused(),
        "messages": refused(note=_ELSEWHERE),
        "n": refused(1, note=_ELSEWHERE),
        "stop": refused([], "", note=_ELSEWHERE),
        "max_tokens": refused(note="use `max_output_tokens`"),
        "max_completion_tokens": refused(note="use `max_output_tokens`"),
        "response_format": refused({"type": "text"}, note="use `text.format`"),
        "structured_outputs": refused({}, note="use `text.format`"),
        "reasoning_effort": refused(note="use `reasoning.effort`"),
        "logprobs": refused(False, note="use `include` and `top_logprobs`"),
        "logit_bias": refused({}),
        "presence_penalty": refused(0),
        "frequency_penalty": refused(0),
        "repetition_penalty": refused(1),
        "top_k": refused(0, -1),
        "min_p": refused(0),
        "min_tokens": refused(0),
        "stop_token_ids": refused([]),
        "skip_special_tokens": _SHARED["skip_special_tokens"],
        "prompt_logprobs": refused(note=_ELSEWHERE),
        "bad_words": refused([]),
        "use_beam_search": _SHARED["use_beam_search"],
        "priority": _SHARED["priority"],
        "cache_salt": _SHARED["cache_salt"],
    },
)

_STREAMS = "a WebSocket always streams"

SOCKET = Directives(
    "response.create over a WebSocket",
    {
        **RESPONSES.fields,
        **honoured("type stream_id idempotency_key"),
        "stream": refused(True, note=_STREAMS),
        "background": refused(False, note="send it by POST /v1/responses, and read it here by `response.retrieve`"),
        "generate": refused(True, note="a response always has output"),
        "access_programs": refused(),
        "image": refused(),
    },
)

_THINKING = "use `thinking`"
_OUTPUT = "use `output_config.format`"

MESSAGES = Directives(
    "POST /v1/messages",
    {
        **honoured("model messages system max_tokens stop_sequences stream temperature top_p top_k thinking"),
        **honoured("tools tool_choice output_config output_format seed ignore_eos"),
        "metadata": hint("names the end user; nothing depends on it"),
        "service_tier": hint("the tier is the tenant's default"),
        "speed": hint("answers come as fast as they can"),
        "cache_control": hint("prefixes are always cached"),
        "context_management": hint("the whole conversation is the prompt"),
        "inference_geo": hint("your server is where you run it"),
        "diagnostics": hint(),
        "user_profile_id": hint("names the end user; nothing depends on it"),
        "workspace_id": hint("the key names the tenant"),
        "anthropic_version": hint("sent by clients of other clouds"),
        "anthropic_beta": hint("sent by clients of other clouds"),
        "mcp_servers": refused([]),
        "container": refused(),
        "compaction": refused(note="shorten the conversation yourself"),
        "fallbacks": refused([], note="a deployment's fallbacks are set on the server"),
        "fallback_credit_token": refused(),
        "thread": refused(note="use conversations of the Responses API"),
        "prompt": refused(note=_ELSEWHERE),
        "max_tokens_to_sample": refused(note="use `max_tokens`"),
        "max_completion_tokens": refused(note="use `max_tokens`"),
        "stop": refused([], "", note="use `stop_sequences`"),
        "n": refused(1, note=_ELSEWHERE),
        "input": refused(note=_ELSEWHERE),
        "instructions": refused(note="use `system`"),
        "response_format": refused({"type": "text"}, note=_OUTPUT),
        "structured_outputs": refused({}, note=_OUTPUT),
        "guided_json": refused(note=_OUTPUT),
        "guided_regex": refused(note=_ELSEWHERE),
        "guided_choice": refused(note=_ELSEWHERE),
        "guided_grammar": refused(note=_ELSEWHERE),
        "parallel_tool_calls": refused(True, note="use `tool_choice.disable_parallel_tool_use`"),
        "functions": refused([], note=_USE_CALLS),
        "reasoning_effort": refused(note=_THINKING),
        "reasoning": refused({}, note=_THINKING),
        "chat_template_kwargs": refused({}, note=_THINKING),
        "store": refused(False, note=_ELSEWHERE),
        "logprobs": refused(False, note=_ELSEWHERE),
        "top_logprobs": refused(0, note=_ELSEWHERE),
        "logit_bias": refused({}, note=_ELSEWHERE),
        "presence_penalty": refused(0, note=_ELSEWHERE),
        "frequency_penalty": refused(0, note=_ELSEWHERE),
        "repetition_penalty": refused(1, note=_ELSEWHERE),
        "min_p": refused(0, note=_ELSEWHERE),
        "min_tokens": refused(0, note=_ELSEWHERE),
        "stop_token_ids": refused([], note=_ELSEWHERE),
        "skip_special_tokens": _SHARED["skip_special_tokens"],
        "bad_words": refused([]),
        "use_beam_search": _SHARED["use_beam_search"],
        "priority": refused(0),
        "cache_salt": _SHARED["cache_salt"],
    },
)

_TEMPLATE = "the model's own template is used"

TOKENIZE = Directives(
    "POST /tokenize",
    {
        **honoured("model prompt messages tools chat_template_kwargs add_special_tokens return_token_strs"),
        "add_generation_prompt": refused(True),
        "continue_final_message": refused(False),
        "chat_template": refused(note=_TEMPLATE),
        "mm_processor_kwargs": refused({}),
    },
)

DETOKENIZE = Directives("POST /detokenize", honoured("model tokens"))

_KEPT_LOADED = "the operator decides which models stay loaded"
_ENGINE = "how the model is computed is set on the server"

_OLLAMA = {
    **honoured("model stream format options think logprobs top_logprobs"),
    "keep_alive": hint(_KEPT_LOADED),
}

OLLAMA_CHAT = Directives(
    "POST /api/chat",
    {**_OLLAMA, **honoured("messages tools"), "template": refused("", note=_TEMPLATE)},
)

OLLAMA_GENERATE = Directives(
    "POST /api/generate",
    {
        **_OLLAMA,
        **honoured("prompt system raw"),
        "suffix": refused(""),
        "template": refused("", note=_TEMPLATE),
        "context": refused([], note="use /api/chat and send the messages"),
        "images": refused([]),
        "width": refused(0),
        "height": refused(0),
        "steps": refused(0),
    },
)

OLLAMA_EMBED = Directives(
    "POST /api/embed",
    {
        **honoured("model input truncate dimensions"),
        "keep_alive": hint(_KEPT_LOADED),
        "options": hint(_ENGINE),
        "prompt": refused(note="use `input`"),
    },
)

OLLAMA_OPTIONS = Directives(
    "options of POST /api/chat and /api/generate",
    {
        **honoured("temperature top_k top_p min_p seed num_predict stop repeat_penalty"),
        **honoured("presence_penalty frequency_penalty"),
        "num_ctx": hint("the context is the model's own; a prompt that is too long is refused"),
        "num_keep": hint("no part of a prompt is left out"),
        **hints("numa num_batch num_gpu main_gpu low_vram f16_kv num_thread use_mmap use_mlock", _ENGINE),
        **hints("logits_all vocab_only embedding_only", _ENGINE),
        "mirostat": _SHARED["mirostat"],
        "mirostat_tau": hint("it belongs to mirostat"),
        "mirostat_eta": hint("it belongs to mirostat"),
        "tfs_z": _SHARED["tfs_z"],
        "typical_p": _SHARED["typical_p"],
        "repeat_last_n": hint("penalties look at all tokens so far, not at the last ones; with `0` there are none"),
        "penalize_newline": refused(True),
    },
)

ROUTES = (
    *(CHAT, COMPLETIONS, RESPONSES, SOCKET, MESSAGES, EMBEDDINGS, CLASSIFY, RERANK, SCORE),
    *(TOKENIZE, DETOKENIZE, OLLAMA_CHAT, OLLAMA_GENERATE, OLLAMA_EMBED, OLLAMA_OPTIONS),
)
