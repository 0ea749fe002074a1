"""One table of every field that a known client or engine sends, and what this server does with it. Knows no HTTP.

No directive is dropped in silence: a field is honoured, refused by name, or a hint, which changes nothing by its
nature. ``docs/fields.md`` is written from this table. A field that is not in it, because no known client sends it, is
ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any


class Treatment(Enum):
    """What becomes of a field."""

    HONOURED = "honoured"
    HINT = "hint"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Directive:
    """One field."""

    treatment: Treatment
    note: str = ""
    """Why, or what to send instead."""
    neutral: tuple[Any, ...] = ()
    """Values of a refused field that are accepted because they change nothing, besides null."""


@dataclass(frozen=True)
class Directives:
    """The fields of one route."""

    route: str
    fields: Mapping[str, Directive]

    @cached_property
    def refused(self) -> dict[str, tuple[Any, ...]]:
        """The refused fields, each with its neutral values."""
        return {name: each.neutral for name, each in self.fields.items() if each.treatment is Treatment.REFUSED}

    @cached_property
    def notes(self) -> dict[str, str]:
        """Why fields are refused or what to send instead, by the field's name, as far as there is something to say."""
        return {name: each.note.replace("`", "'") for name, each in self.fields.items() if each.note}

    def named(self, treatment: Treatment) -> dict[str, Directive]:
        """The fields of one treatment, in the table's order."""
        return {name: each for name, each in self.fields.items() if each.treatment is treatment}


def _honoured(names: str) -> dict[str, Directive]:
    return {name: Directive(Treatment.HONOURED) for name in names.split()}


def _hint(note: str = "") -> Directive:
    return Directive(Treatment.HINT, note)


def _refused(*neutral: Any, note: str = "") -> Directive:
    return Directive(Treatment.REFUSED, note, neutral)


_ELSEWHERE = "a field of another route"
_FORM = "use `response_format` or `structured_outputs`"
_SAMPLING = "this sampling method is not implemented"
_USE_CALLS = "use `tools`"

_SHARED = {
    **_honoured("model temperature top_p top_k min_p stop stop_token_ids ignore_eos min_tokens seed n stream"),
    **_honoured("max_tokens presence_penalty frequency_penalty repetition_penalty logit_bias logprobs stream_options"),
    **_honoured("store prompt_cache_key service_tier response_format structured_outputs"),
    **_honoured("guided_json guided_regex guided_choice guided_grammar"),
    "user": _hint("names the end user; nothing depends on it"),
    "safety_identifier": _hint("names the end user; nothing depends on it"),
    "metadata": _hint("kept with responses and conversations only"),
    "prompt_cache_retention": _hint("prefixes stay cached while there is room"),
    "prompt_cache_options": _hint("prefixes stay cached while there is room"),
    "cache_prompt": _hint("prefixes are always cached"),
    "request_id": _hint("send the header `x-request-id`"),
    "rid": _hint("send the header `x-request-id`"),
    "spaces_between_special_tokens": _hint("special tokens are not part of an answer's text"),
    "guided_decoding_backend": _hint("there is only one backend"),
    "guided_whitespace_pattern": _refused(note="JSON comes without white space"),
    "regex": _refused(note=_FORM),
    "ebnf": _refused(note=_FORM),
    "grammar": _refused("", note=_FORM),
    "json_schema": _refused(note=_FORM),
    "use_beam_search": _refused(False, note=_SAMPLING),
    "length_penalty": _refused(1, note="it belongs to beam search"),
    "early_stopping": _refused(False, note="it belongs to beam search"),
    "bad_words": _refused([], note="use `logit_bias` for single tokens"),
    "allowed_token_ids": _refused([], note="use `structured_outputs`"),
    "prompt_logprobs": _refused(note="on completions, `echo` with `logprobs` returns them"),
    "return_token_ids": _refused(False),
    "return_tokens_as_token_ids": _refused(False),
    "include_stop_str_in_output": _refused(False),
    "no_stop_trim": _refused(False),
    "stop_regex": _refused([], ""),
    "skip_special_tokens": _refused(True, note="special tokens are not part of an answer's text"),
    "truncate_prompt_tokens": _refused(note="a prompt that is too long is refused"),
    "logits_processors": _refused([]),
    "custom_logit_processor": _refused(),
    "priority": _refused(0, note="use `service_tier`"),
    "cache_salt": _refused(note="tenants share no cached prefix"),
    "kv_transfer_params": _refused(),
    "vllm_xargs": _refused({}),
    "lora_path": _refused(),
    "mirostat": _refused(0, note=_SAMPLING),
    "typical_p": _refused(1, note=_SAMPLING),
    "tfs_z": _refused(1, note=_SAMPLING),
    "top_a": _refused(0, note=_SAMPLING),
    "dry_multiplier": _refused(0, note=_SAMPLING),
    "xtc_probability": _refused(0, note=_SAMPLING),
    "dynatemp_range": _refused(0, note=_SAMPLING),
    "repeat_penalty": _refused(1, note="use `repetition_penalty`"),
    "n_predict": _refused(-1, note="use `max_tokens`"),
    "input": _refused(note=_ELSEWHERE),
    "instructions": _refused(note=_ELSEWHERE),
    "max_output_tokens": _refused(note=_ELSEWHERE),
    "previous_response_id": _refused(note=_ELSEWHERE),
    "conversation": _refused(note=_ELSEWHERE),
    "background": _refused(False, note=_ELSEWHERE),
    "text": _refused(note=_ELSEWHERE),
}

CHAT = Directives(
    "POST /v1/chat/completions",
    {
        **_SHARED,
        **_honoured("messages max_completion_tokens top_logprobs chat_template_kwargs reasoning_effort"),
        **_honoured("tools tool_choice parallel_tool_calls"),
        "verbosity": _hint(),
        "prediction": _hint("guesses come from the prompt and the answer"),
        "functions": _refused([], note=_USE_CALLS),
        "function_call": _refused("none", "auto", note=_USE_CALLS),
        "modalities": _refused(["text"]),
        "audio": _refused(),
        "web_search_options": _refused(),
        "include_reasoning": _refused(True),
        "separate_reasoning": _refused(True),
        "stream_reasoning": _refused(True),
        "reasoning": _refused({}, note="use `reasoning_effort`"),
        "thinking": _refused(note='use `chat_template_kwargs`, e.g. `{"enable_thinking": false}`'),
        "enable_thinking": _refused(note='use `chat_template_kwargs`, e.g. `{"enable_thinking": false}`'),
        "thinking_budget": _refused(note="use `reasoning_effort`"),
        "thinking_token_budget": _refused(note="use `reasoning_effort`"),
        "add_generation_prompt": _refused(True),
        "continue_final_message": _refused(False),
        "add_special_tokens": _refused(False),
        "chat_template": _refused(note="the model's own template is used"),
        "documents": _refused([], note="put them into a message"),
        "mm_processor_kwargs": _refused({}),
        "echo": _refused(False, note=_ELSEWHERE),
        "best_of": _refused(1, note=_ELSEWHERE),
        "prompt": _refused(note=_ELSEWHERE),
        "suffix": _refused("", note=_ELSEWHERE),
    },
)

COMPLETIONS = Directives(
    "POST /v1/completions",
    {
        **_SHARED,
        **_honoured("prompt echo best_of"),
        "suffix": _refused(""),
        "add_special_tokens": _refused(True),
        "prompt_embeds": _refused(),
        "messages": _refused(note=_ELSEWHERE),
        "tools": _refused([], note=_ELSEWHERE),
        "tool_choice": _refused("none", "auto", note=_ELSEWHERE),
        "functions": _refused([], note=_ELSEWHERE),
        "chat_template_kwargs": _refused({}, note=_ELSEWHERE),
        "reasoning_effort": _refused(note=_ELSEWHERE),
        "max_completion_tokens": _refused(note="use `max_tokens`"),
        "top_logprobs": _refused(0, note="use `logprobs`, which is a number here"),
    },
)

RESPONSES = Directives(
    "POST /v1/responses",
    {
        **_honoured("model input instructions previous_response_id conversation truncation store background stream"),
        **_honoured("metadata max_output_tokens temperature top_p include top_logprobs text reasoning"),
        **_honoured("prompt_cache_key user safety_identifier service_tier seed ignore_eos chat_template_kwargs"),
        **_honoured("tools tool_choice parallel_tool_calls"),
        "stream_options": _hint("events are never padded"),
        "prompt_cache_retention": _SHARED["prompt_cache_retention"],
        "prompt_cache_options": _SHARED["prompt_cache_options"],
        "client_metadata": _hint("names the client"),
        "request_id": _SHARED["request_id"],
        "max_tool_calls": _refused(),
        "prompt": _refused(note="stored prompts are not implemented"),
        "context_management": _refused([]),
        "moderation": _refused(),
        "messages": _refused(note=_ELSEWHERE),
        "n": _refused(1, note=_ELSEWHERE),
        "stop": _refused([], "", note=_ELSEWHERE),
        "max_tokens": _refused(note="use `max_output_tokens`"),
        "max_completion_tokens": _refused(note="use `max_output_tokens`"),
        "response_format": _refused({"type": "text"}, note="use `text.format`"),
        "structured_outputs": _refused({}, note="use `text.format`"),
        "reasoning_effort": _refused(note="use `reasoning.effort`"),
        "logprobs": _refused(False, note="use `include` and `top_logprobs`"),
        "logit_bias": _refused({}),
        "presence_penalty": _refused(0),
        "frequency_penalty": _refused(0),
        "repetition_penalty": _refused(1),
        "top_k": _refused(0, -1),
        "min_p": _refused(0),
        "min_tokens": _refused(0),
        "stop_token_ids": _refused([]),
        "skip_special_tokens": _SHARED["skip_special_tokens"],
        "prompt_logprobs": _refused(),
        "bad_words": _refused([]),
        "use_beam_search": _SHARED["use_beam_search"],
        "priority": _SHARED["priority"],
        "cache_salt": _SHARED["cache_salt"],
    },
)

_THINKING = "use `thinking`"
_OUTPUT = "use `output_config.format`"

MESSAGES = Directives(
    "POST /v1/messages",
    {
        **_honoured("model messages system max_tokens stop_sequences stream temperature top_p top_k thinking"),
        **_honoured("tools tool_choice output_config output_format seed ignore_eos"),
        "metadata": _hint("names the end user; nothing depends on it"),
        "service_tier": _hint("the tier is the tenant's default"),
        "speed": _hint("answers come as fast as they can"),
        "cache_control": _hint("prefixes are always cached"),
        "context_management": _hint("the whole conversation is the prompt"),
        "inference_geo": _hint("your server is where you run it"),
        "diagnostics": _hint(),
        "user_profile_id": _hint("names the end user; nothing depends on it"),
        "workspace_id": _hint("the key names the tenant"),
        "anthropic_version": _hint("sent by clients of other clouds"),
        "anthropic_beta": _hint("sent by clients of other clouds"),
        "mcp_servers": _refused([]),
        "container": _refused(),
        "compaction": _refused(note="shorten the conversation yourself"),
        "fallbacks": _refused([], note="a deployment's fallbacks are set on the server"),
        "fallback_credit_token": _refused(),
        "thread": _refused(note="use conversations of the Responses API"),
        "prompt": _refused(note=_ELSEWHERE),
        "max_tokens_to_sample": _refused(note="use `max_tokens`"),
        "max_completion_tokens": _refused(note="use `max_tokens`"),
        "stop": _refused([], "", note="use `stop_sequences`"),
        "n": _refused(1, note=_ELSEWHERE),
        "input": _refused(note=_ELSEWHERE),
        "instructions": _refused(note="use `system`"),
        "response_format": _refused({"type": "text"}, note=_OUTPUT),
        "structured_outputs": _refused({}, note=_OUTPUT),
        "guided_json": _refused(note=_OUTPUT),
        "guided_regex": _refused(note=_ELSEWHERE),
        "guided_choice": _refused(note=_ELSEWHERE),
        "guided_grammar": _refused(note=_ELSEWHERE),
        "parallel_tool_calls": _refused(True, note="use `tool_choice.disable_parallel_tool_use`"),
        "functions": _refused([], note=_USE_CALLS),
        "reasoning_effort": _refused(note=_THINKING),
        "reasoning": _refused({}, note=_THINKING),
        "chat_template_kwargs": _refused({}, note=_THINKING),
        "store": _refused(False, note=_ELSEWHERE),
        "logprobs": _refused(False, note=_ELSEWHERE),
        "top_logprobs": _refused(0, note=_ELSEWHERE),
        "logit_bias": _refused({}, note=_ELSEWHERE),
        "presence_penalty": _refused(0, note=_ELSEWHERE),
        "frequency_penalty": _refused(0, note=_ELSEWHERE),
        "repetition_penalty": _refused(1, note=_ELSEWHERE),
        "min_p": _refused(0, note=_ELSEWHERE),
        "min_tokens": _refused(0, note=_ELSEWHERE),
        "stop_token_ids": _refused([], note=_ELSEWHERE),
        "skip_special_tokens": _SHARED["skip_special_tokens"],
        "bad_words": _refused([]),
        "use_beam_search": _SHARED["use_beam_search"],
        "priority": _refused(0),
        "cache_salt": _SHARED["cache_salt"],
    },
)

ROUTES = (CHAT, COMPLETIONS, RESPONSES, MESSAGES)
