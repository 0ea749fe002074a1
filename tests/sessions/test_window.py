"""What does not fit is cut from its oldest end, and only as much as must be."""

import pytest

from axon.domain.item import Item
from axon.errors import PromptTooLong
from axon.sessions.prompt import Prompts, Threads
from axon.sessions.window import cuts, fitted
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
        lambda num_dropped: [
            {"role": "system", "content": "S"},
            *({"role": "user", "content": text} for text in texts[num_dropped:]),
        ],
        cuts=range(1, len(texts)),
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
    assert cuts(told("user", "assistant", "user", "assistant", "developer", "user")) == [2, 5]
    assert cuts(told("user", "assistant", "assistant")) == [2]
    assert cuts(told("user")) == [0]


@pytest.mark.parametrize("num_turns", range(1, 12))
async def test_a_template_that_wants_roles_to_alternate_is_never_shown_less_than_whole_turns(num_turns: int) -> None:
    prompts = Prompts(ByteTokenizer(), ChatTemplate(ALTERNATING), Threads(), max_model_len=80)
    items = told(*["user", "assistant"] * num_turns, "user")
    ids = await fitted(
        prompts,
        lambda num_dropped: [{"role": item.role, "content": item.text} for item in items[num_dropped:]],
        cuts=cuts(items),
        max_tokens=10,
    )
    assert len(ids) == min(len(items), 7) * 10


async def test_what_is_asked_now_is_never_cut(prompts: Prompts) -> None:
    with pytest.raises(PromptTooLong):
        await cut(prompts, ["a", "b" * 200])
