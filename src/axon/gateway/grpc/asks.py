"""Makes the body of a chat, a completion or an embeddings request of a gRPC message. Pure; knows no HTTP.

The fields of a message are other words for those of OpenAI's API. So it becomes JSON, which the same parser reads
within the same bounds, and is admitted and answered as if it had come over HTTP.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from axon.errors import InvalidInput
from axon.v1 import axon_pb2 as pb

_SAMPLING = (
    *("max_tokens", "temperature", "top_p", "top_k", "min_p", "ignore_eos", "min_tokens"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty", "seed"),
)
"""Fields of ``Sampling`` that have the same name over HTTP."""
_OURS = {
    "n": "sampling.choices",
    "top_logprobs": "sampling.logprobs",
    "structured_outputs.json": "form.json_schema",
    "structured_outputs.regex": "form.regex",
    "structured_outputs.choice": "form.choices",
    "structured_outputs.grammar": "form.grammar",
    "chat_template_kwargs": "chat.enable_thinking",
    "truncate_prompt_tokens": "truncate_tokens",
}
"""Our names of fields that have another name over HTTP."""
MAX_IDS = 1 << 20
"""A message may have this many token ids; how many a prompt may have, its model decides."""
_encode = msgspec.json.Encoder().encode


def turn_body(turn: pb.Turn) -> bytes:
    """Returns the body of the chat or the completion that a turn asks for; raises ``InvalidInput``."""
    kind = turn.WhichOneof("input")
    if kind is None:
        raise InvalidInput(
            "A turn needs one of 'chat', 'prompt' and 'prompt_ids'.", param="turn", code="missing_required_parameter"
        )
    body = {"model": turn.model, "stream": True, **_sampling(turn.sampling), **_form(turn.form)}
    if turn.store:
        body["store"] = True
    if turn.service_tier:
        body["service_tier"] = turn.service_tier
    scored = turn.sampling.HasField("logprobs")
    if kind == "chat":
        return _encode(body | _chat(turn.chat) | (_chat_logprobs(turn.sampling) if scored else {}))
    body["prompt"] = turn.prompt if kind == "prompt" else _ids([turn.prompt_ids], "prompt_ids")[0]
    return _encode(body | ({"logprobs": turn.sampling.logprobs} if scored else {}))


def embedding_body(asked: pb.EmbedRequest) -> bytes:
    """Returns the body of the embeddings request; raises ``InvalidInput``."""
    if asked.texts and asked.token_ids:
        raise InvalidInput("'texts' and 'token_ids' cannot be used together.", param="token_ids")
    if not asked.texts and not asked.token_ids:
        raise InvalidInput("'texts' must not be empty.", param="texts", code="missing_required_parameter")
    body: dict[str, Any] = {"model": asked.model}
    body["input"] = list(asked.texts) or _ids(asked.token_ids, "token_ids")
    if asked.HasField("dimensions"):
        body["dimensions"] = asked.dimensions
    if asked.HasField("truncate_tokens"):
        body["truncate_prompt_tokens"] = asked.truncate_tokens
    if asked.prompt_name:
        body["prompt_name"] = asked.prompt_name
    if asked.service_tier:
        body["service_tier"] = asked.service_tier
    return _encode(body)


def in_our_words(error: InvalidInput) -> InvalidInput:
    """Returns the error of a body with the name that its field has in the message."""
    ours = _OURS.get(error.param or "")
    if error.param is None or ours is None:
        return error
    return type(error)(error.message.replace(f"'{error.param}'", f"'{ours}'"), code=error.code, param=ours)


def _ids(lists: Sequence[pb.TokenIds], param: str) -> list[list[int]]:
    if sum(len(each.ids) for each in lists) > MAX_IDS:
        raise InvalidInput(f"'{param}' has too many token ids: a message may have {MAX_IDS}.", param=param)
    return [list(each.ids) for each in lists]


def _sampling(asked: pb.Sampling) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(asked, name) for name in _SAMPLING if asked.HasField(name)}
    if asked.HasField("choices"):
        found["n"] = asked.choices
    if asked.stop:
        found["stop"] = list(asked.stop)
    if asked.stop_token_ids:
        found["stop_token_ids"] = list(asked.stop_token_ids)
    if asked.logit_bias:
        found["logit_bias"] = {str(token): asked.logit_bias[token] for token in sorted(asked.logit_bias)}
    return found


def _chat_logprobs(asked: pb.Sampling) -> dict[str, Any]:
    return {"logprobs": True, "top_logprobs": asked.logprobs}


def _form(form: pb.Form) -> dict[str, Any]:
    match form.WhichOneof("kind"):
        case "json_object":
            outputs: dict[str, Any] = {"json_object": form.json_object}
        case "json_schema":
            outputs = {"json": _json(form.json_schema, "form.json_schema")}
        case "regex":
            outputs = {"regex": form.regex}
        case "choices":
            outputs = {"choice": list(form.choices.texts)}
        case "grammar":
            outputs = {"grammar": form.grammar}
        case _:
            return {}
    return {"structured_outputs": outputs}


def _chat(chat: pb.Chat) -> dict[str, Any]:
    found: dict[str, Any] = {"messages": [_message(each) for each in chat.messages]}
    if chat.tools:
        found["tools"] = [_tool(tool, index) for index, tool in enumerate(chat.tools)]
    if chat.tool_choice:
        found["tool_choice"] = chat.tool_choice
    if chat.function:
        if chat.tool_choice:
            raise InvalidInput("'tool_choice' and 'function' cannot be used together.", param="chat.function")
        found["tool_choice"] = {"type": "function", "function": {"name": chat.function}}
    if chat.HasField("parallel_tool_calls"):
        found["parallel_tool_calls"] = chat.parallel_tool_calls
    if chat.reasoning_effort:
        found["reasoning_effort"] = chat.reasoning_effort
    if chat.HasField("enable_thinking"):
        found["chat_template_kwargs"] = {"enable_thinking": chat.enable_thinking}
    return found


def _message(message: pb.Message) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
        found["content"] = message.content or None
    if message.tool_call_id:
        found["tool_call_id"] = message.tool_call_id
    return found


def _tool(tool: pb.Tool, index: int) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters:
        function["parameters"] = _json(tool.parameters, f"chat.tools.{index}.parameters")
    if tool.HasField("strict"):
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _json(text: str, param: str) -> msgspec.Raw:
    """Returns JSON text as a part of the body, undecoded; raises ``InvalidInput`` if it is none."""
    try:
        return msgspec.Raw(msgspec.json.decode(text, type=msgspec.Raw))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"'{param}' is not valid JSON: {error}", param=param, code="invalid_json") from None
