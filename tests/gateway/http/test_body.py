"""Bodies made to be dear: each is refused by name, for the price of its bytes."""

import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from axon.errors import InvalidInput
from axon.gateway.admin import keys, plans, tenants
from axon.gateway.config import GatewayConfig
from axon.gateway.directives import CHAT as CHAT_FIELDS
from axon.gateway.directives import COMPLETIONS, RESPONSES
from axon.gateway.http import body as bodies
from axon.gateway.http.body import Bodies, Wire, num_parts, num_values, parse
from axon.gateway.openai.requests import ChatRequest, CompletionRequest, Request
from axon.gateway.responses.requests import Context, ConversationRequest, ItemsRequest, MetadataRequest, ResponseRequest

SIZE = 4 << 20
MAX_BYTES = 96 << 20
"""That Python may hold at once over a body of ``SIZE``."""
MAX_ERRORS = 5_000


def repeated(entry: str, before: str = "[", after: str = "]") -> str:
    """As many of an entry as a body has room for; ``#`` in it is a number of its own."""
    if "#" not in entry:
        return before + ",".join([entry] * (SIZE // (len(entry) + 1) - 100)) + after
    return before + ",".join(entry.replace("#", str(at)) for at in range(SIZE // (len(entry) + 7) - 100)) + after


def members(value: str) -> str:
    return repeated(f'"#":{value}', "{", "}")


def of_chat(content: str) -> str:
    return f'{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}'


def of_prompt(prompt: str) -> str:
    return f'{{"model":"m","prompt":{prompt}}}'


CHAT = '"model":"m","messages":[{"role":"user","content":"hi"}]'
HOSTILE: dict[str, tuple[type[Wire], Callable[[], str], str]] = {
    "objects for prompts": (CompletionRequest, lambda: of_prompt(repeated("{}")), "prompt"),
    "lists for prompts": (CompletionRequest, lambda: of_prompt(repeated("[]")), "prompt"),
    "lists of objects for prompts": (CompletionRequest, lambda: of_prompt(repeated("[{}]")), "prompt"),
    "nulls for prompts": (CompletionRequest, lambda: of_prompt(repeated("null")), "prompt"),
    "numbers for a prompt": (CompletionRequest, lambda: of_prompt(repeated("1000")), "prompt"),
    "numbers for prompts": (CompletionRequest, lambda: of_prompt(repeated("[" + "1000," * 1_999 + "1]")), "prompt"),
    "fractions for prompts": (CompletionRequest, lambda: of_prompt(repeated("1.5")), "prompt"),
    "texts among numbers": (CompletionRequest, lambda: of_prompt(repeated('1,""')), "prompt"),
    "many prompts of one token": (
        CompletionRequest,
        lambda: of_prompt("[" + ",".join(["[1]"] * 130_000) + "]"),
        "prompt",
    ),
    "bad biases": (ChatRequest, lambda: f'{{{CHAT},"logit_bias":{members("{}")}}}', "logit_bias"),
    "many biases": (ChatRequest, lambda: f'{{{CHAT},"logit_bias":{members("1")}}}', "logit_bias"),
    "200,000 bad biases": (
        ChatRequest,
        lambda: json.dumps({**json.loads(f"{{{CHAT}}}"), "logit_bias": {f"x{at}": "no" for at in range(200_000)}}),
        "logit_bias",
    ),
    "objects for messages": (ChatRequest, lambda: f'{{"model":"m","messages":{repeated("{}")}}}', "messages"),
    "objects for content": (ChatRequest, lambda: of_chat(repeated("{}")), "messages"),
    "numbers for content": (ChatRequest, lambda: of_chat(repeated("1")), "messages"),
    "objects for stops": (ChatRequest, lambda: f'{{{CHAT},"stop":{repeated("{}")}}}', "stop"),
    "objects for stop ids": (ChatRequest, lambda: f'{{{CHAT},"stop_token_ids":{repeated("{}")}}}', "stop_token_ids"),
    "texts for stop ids": (ChatRequest, lambda: f'{{{CHAT},"stop_token_ids":{repeated("0.5")}}}', "stop_token_ids"),
    "objects for tools": (ChatRequest, lambda: f'{{{CHAT},"tools":{repeated("{}")}}}', "tools"),
    "a list for a model": (ChatRequest, lambda: f'{{"messages":[],"model":{repeated("[]")}}}', "model"),
    "objects for input": (ResponseRequest, lambda: f'{{"model":"m","input":{repeated("{}")}}}', "input"),
    "numbers for input": (Context, lambda: f'{{"model":"m","input":{repeated("1")}}}', "input"),
    "numbers for an include": (
        ResponseRequest,
        lambda: f'{{"model":"m","input":"x","include":{repeated("1")}}}',
        "include",
    ),
    "bad metadata": (ResponseRequest, lambda: f'{{"model":"m","input":"x","metadata":{members("1")}}}', "metadata"),
    "much metadata": (MetadataRequest, lambda: f'{{"metadata":{members("{}")}}}', "metadata"),
    "objects for items": (ItemsRequest, lambda: f'{{"items":{repeated("{}")}}}', "items"),
    "numbers for items": (ConversationRequest, lambda: f'{{"items":{repeated("1")}}}', "items"),
    "unknown limits": (tenants.NewTenant, lambda: f'{{"limits":{members("1")}}}', "limits"),
    "unknown fields of an admin's": (plans.NewPlan, lambda: members("1"), "0"),
    "numbers for scopes": (keys.NewKey, lambda: f'{{"tenant":"t","scopes":{repeated("1")}}}', "scopes"),
}
"""Each is of some megabytes, and so made when its test runs."""


@pytest.fixture
def num_errors(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many errors each refusal has found before it said one."""
    seen: list[int] = []
    real = bodies.field_error

    def counted(error: ValidationError) -> InvalidInput:
        seen.append(error.error_count())
        return real(error)

    monkeypatch.setattr(bodies, "field_error", counted)
    return seen


def not_yet(kind: type[Wire]) -> dict[str, tuple[Any, ...]]:
    if issubclass(kind, Request):
        return CHAT_FIELDS.refused if issubclass(kind, ChatRequest) else COMPLETIONS.refused
    return RESPONSES.refused if issubclass(kind, Context) else {}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_is_refused_by_name_at_the_first_error(name: str, num_errors: list[int]) -> None:
    kind, made, param = HOSTILE[name]
    text = made()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput) as refused:
            parse(kind, text.encode(), not_yet(kind))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (refused.value.param or "").startswith(param), refused.value
    assert len(refused.value.message) < 300
    assert peak < MAX_BYTES
    assert sum(num_errors) < MAX_ERRORS


@pytest.mark.parametrize(
    ("entry", "as_members"), [("{}", False), ("[]", False), ("[]", True), ('""', False), ("1", False)]
)
def test_an_unknown_field_makes_no_object(entry: str, as_members: bool) -> None:
    junk = members(entry) if as_members else repeated(entry)
    body = f'{{"junk":{junk},{CHAT}}}'.encode()
    tracemalloc.start()
    try:
        assert parse(ChatRequest, body, CHAT_FIELDS.refused).texts() == [{"role": "user", "content": "hi"}]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_unknown_names_make_no_object() -> None:
    body = ('{"model":"m",' + members("1")[1:]).encode()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="prompt"):
            parse(CompletionRequest, body, COMPLETIONS.refused)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def kinds(kind: type[Wire] = Wire) -> Iterator[type[Wire]]:
    for each in kind.__subclasses__():
        yield each
        yield from kinds(each)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, (list, tuple)):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("kind", sorted(kinds(), key=str), ids=str)
def test_every_list_of_a_body_ends_at_its_first_error_and_every_object_of_free_names_is_bounded(
    kind: type[Wire],
) -> None:
    schema = kind.__pydantic_core_schema__
    assert all(node.get("fail_fast") for node in nodes(schema) if node.get("type") == "list")
    bounded = [node["schema"] for node in nodes(schema) if node.get("type") == "function-before"]
    assert all(node in bounded and node["max_length"] for node in nodes(schema) if node.get("type") == "dict")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1", 0),
        ("[1, 2, 3]", 1),
        ('"a"', 1),
        ('["a", {"b": []}]', 5),
        (r'["[{,\"[", "\\"]', 3),
        (r'["\\\"[\\", {}]', 3),
    ],
)
def test_parts_are_counted_outside_of_texts(text: str, parts: int) -> None:
    assert num_parts(text.encode()) == parts


def test_a_text_full_of_brackets_and_quotes_is_taken() -> None:
    said = '[{"\\,' * (SIZE // 12)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": said}]}).encode()
    assert parse(ChatRequest, body, CHAT_FIELDS.refused).messages[0].content == said


def test_as_many_messages_as_are_allowed_are_taken() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    body = json.dumps({"model": "m", "messages": [message] * 10_000}).encode()
    assert len(parse(ChatRequest, body, CHAT_FIELDS.refused).messages) == 10_000


@pytest.mark.parametrize("prompt", [[12345] * 250_000, [[12345] * 2_000] * 128, [[12345] * 100_000] * 2])
def test_long_prompts_of_token_ids_are_taken(prompt: Any) -> None:
    body = json.dumps({"model": "m", "prompt": prompt}).encode()
    assert parse(CompletionRequest, body, COMPLETIONS.refused).prompt == prompt


async def test_two_prompts_of_half_a_million_ids_are_taken_where_the_model_has_that_context() -> None:
    body = json.dumps({"model": "m", "prompt": [[12345] * 500_000] * 2}).encode()
    parser = Bodies(GatewayConfig())
    try:
        parser.allow_prompts(8_192)
        with pytest.raises(InvalidInput, match=f"may hold {bodies.MAX_VALUES} values"):
            await parser.parse(CompletionRequest, body, COMPLETIONS.refused)
        parser.allow_prompts(500_010)
        assert len((await parser.parse(CompletionRequest, body, COMPLETIONS.refused)).prompts()) == 2
    finally:
        parser.close()


@pytest.mark.parametrize("name", ["numbers for a prompt", "numbers for prompts", "numbers for content"])
def test_a_body_full_of_numbers_takes_little_more_than_its_bytes(name: str) -> None:
    kind, made, param = HOSTILE[name]
    text = made()
    body = text.encode()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput) as refused:
            parse(kind, body, not_yet(kind))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (refused.value.param, peak < 5 * SIZE) == (param, True)


@pytest.mark.parametrize(
    ("text", "values"),
    [("1", 1), ("[1, 2, 3]", 3), ('"a,b"', 1), ('["a,", {"b": [], "c": 1}]', 3), (r'["[{,\",", "\\"]', 2)],
)
def test_values_are_counted_outside_of_texts(text: str, values: int) -> None:
    assert num_values(text.encode()) == values


def test_a_text_full_of_commas_is_taken() -> None:
    said = "," * (SIZE // 2)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": said}]}).encode()
    assert parse(ChatRequest, body, CHAT_FIELDS.refused).messages[0].content == said


async def test_large_bodies_are_parsed_beside_the_loop_and_small_ones_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    class Seen(ChatRequest):
        def model_post_init(self, context: Any) -> None:
            threads.append(threading.current_thread().name)

    parser = Bodies(GatewayConfig())
    try:
        for size in (10, 100_000):
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * size}]}).encode()
            await parser.parse(Seen, body, {})
    finally:
        parser.close()
    assert threads == ["MainThread", "bodies_0"]


@pytest.mark.parametrize("number", ["9" * 5000, "1e999"])
def test_a_number_that_no_double_holds_is_blamed_on_its_field(number: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(ChatRequest, f'{{{CHAT},"seed":{number}}}'.encode(), CHAT_FIELDS.refused)
    assert refused.value.param == "seed"
    assert "out of range" in refused.value.message


def test_many_prompts_are_refused_before_any_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []
    real = msgspec.json.decode

    def counted(piece: bytes) -> object:
        decoded.append(piece)
        return real(piece)

    monkeypatch.setattr(msgspec.json, "decode", counted)
    with pytest.raises(InvalidInput) as refused:
        parse(CompletionRequest, of_prompt("[" + ",".join(["[1]"] * 1_000) + "]").encode(), COMPLETIONS.refused)
    assert refused.value.param == "prompt"
    assert not any(piece.startswith(b"[") for piece in decoded)
