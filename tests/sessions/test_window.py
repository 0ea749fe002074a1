"""What does not fit is cut from its oldest end, and only as much as must be."""

import pytest

from axon.domain.content.item import Item
from axon.errors import PromptTooLong
from axon.sessions.prompt import Prompts, Threads
from axon.sessions.window import Cut, cuts, fitted
from axon.text.template import ChatTemplate
from axon.text.tokenizer import ByteTokenizer

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"

ALTERNATING = """{% for message in messages %}
{%- if (message.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("roles must alternate") }}{% endif %}
{{- message.content }}{% endfor %}"""


@pytest.fixture
def prompts() -> Prompts:
    return Prompts(ByteTokenizer(), ChatTemplate(TEMPLATE), Threads(), max_model_len=80)


async def cut(prompts: Prompts, texts: list[str], max_tokens: int | None = None) -> str:
    """A byte is a token here."""
    ids = await fitted(
        prompts,
        lambda cut: [
            {"role": "system", "content": "S"},
            *({"role": "user", "content": text} for text in texts[cut.start :]),
        ],
        cuts=[Cut(start) for start in range(1, len(texts))],
        max_tokens=max_tokens,
    )
    return bytes(ids).decode()


async def test_what_fits_is_left_whole(prompts: Prompts) -> None:
    assert await cut(prompts, ["a" * 30, "b" * 30]) == "S" + "a" * 30 + "b" * 30
    assert await cut(prompts, ["a" * 78]) == "S" + "a" * 78


@pytest.mark.parametrize("size", [1, 3, 7, 20])
async def test_the_oldest_go_first_and_no_more_than_must(prompts: Prompts, size: int) -> None:
    texts = [chr(97 + number % 26) * size for number in range(100)]
    told = await cut(prompts, texts, max_tokens=20)
    assert told[0] == "S"
    assert told[1:] == "".join(texts)[-len(told) + 1 :]
    assert 60 - size < len(told) <= 60


async def test_room_is_left_for_an_answer_of_unknown_length(prompts: Prompts) -> None:
    assert len(await cut(prompts, ["a"] * 100)) == 70


def told(*roles: str) -> list[Item]:
    return [Item(id=f"msg_{number}", role=role, texts=("x" * 10,)) for number, role in enumerate(roles)]


def test_what_is_left_begins_with_a_user() -> None:
    assert cuts(told("user", "assistant", "user", "assistant", "developer", "user")) == [Cut(2), Cut(5)]
    assert cuts(told("user", "assistant", "assistant")) == [Cut(2, kept=0)]
    assert cuts(told("user")) == [Cut()]


@pytest.mark.parametrize("num_turns", range(1, 12))
async def test_a_template_that_wants_roles_to_alternate_is_never_shown_less_than_whole_turns(num_turns: int) -> None:
    prompts = Prompts(ByteTokenizer(), ChatTemplate(ALTERNATING), Threads(), max_model_len=80)
    items = told(*["user", "assistant"] * num_turns, "user")
    ids = await fitted(
        prompts,
        lambda cut: [{"role": item.role, "content": item.text} for item in cut.of(items)],
        cuts=cuts(items),
        max_tokens=10,
    )
    assert len(ids) == min(len(items), 7) * 10


async def test_what_is_asked_now_is_never_cut(prompts: Prompts) -> None:
    with pytest.raises(PromptTooLong):
        await cut(prompts, ["a", "b" * 200])


def step(number: int, *, calls: int = 1) -> list[Item]:
    """One step of an agent: its calls, and their results."""
    ids = [f"call_{number}_{index}" for index in range(calls)]
    return [
        *(Item(type="function_call", id=f"fc_{id}", role="assistant", texts=("x" * 10,), call_id=id) for id in ids),
        *(Item(type="function_call_output", id=f"o_{id}", role="tool", texts=("y" * 10,), call_id=id) for id in ids),
    ]


def test_an_agent_keeps_its_task_and_no_call_is_parted_from_its_result() -> None:
    items = [*told("user", "assistant", "user"), *step(1), *step(2, calls=2), *told("assistant"), *step(3)]
    found = cuts(items)
    assert found == [Cut(2), Cut(5, kept=2), Cut(9, kept=2), Cut(10, kept=2)]
    for cut in found:
        left = cut.of(items)
        assert left[0].role == "user"
        called = {item.call_id for item in left if item.type == "function_call"}
        assert {item.call_id for item in left if item.type == "function_call_output"} == called


@pytest.mark.parametrize("num_steps", range(1, 12))
async def test_a_long_loop_is_shown_with_its_task_and_its_last_steps(num_steps: int) -> None:
    prompts = Prompts(ByteTokenizer(), ChatTemplate(TEMPLATE), Threads(), max_model_len=80)
    items = [*told("user"), *(item for number in range(num_steps) for item in step(number))]
    ids = await fitted(
        prompts,
        lambda cut: [{"role": "user", "content": item.text} for item in cut.of(items)],
        cuts=cuts(items),
        max_tokens=10,
    )
    assert bytes(ids).decode() == "x" * 10 + ("x" * 10 + "y" * 10) * min(num_steps, 3)
