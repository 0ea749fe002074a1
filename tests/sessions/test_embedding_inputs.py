"""Inputs of an embedding model as token ids, cut between their special tokens where a request says so."""

import asyncio
from collections.abc import Iterator

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from axon.errors import InvalidInput, PromptTooLong
from axon.sessions.embedding_inputs import Fields, Input, InputIds, Pair, input_ids
from axon.sessions.prompt import Prompts, Threads
from axon.text.tokenizer import HFTokenizer

CLS, SEP = 1, 2


@pytest.fixture
def prompts() -> Iterator[Prompts]:
    words = {"[UNK]": 0, "[CLS]": CLS, "[SEP]": SEP, **{letter: 3 + at for at, letter in enumerate("abcdefgh")}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    threads = Threads()
    yield Prompts(HFTokenizer(tokenizer), None, threads, max_model_len=6)
    threads.close()


async def test_texts_get_special_tokens_and_token_ids_are_taken_as_they_are(prompts: Prompts) -> None:
    assert await input_ids(prompts, ["a b", [5, 6]]) == [InputIds([CLS, 3, 4, SEP]), InputIds([5, 6])]


async def test_case_goes_where_the_model_says(prompts: Prompts) -> None:
    assert await input_ids(prompts, ["A B"], lowercase=True) == [InputIds([CLS, 3, 4, SEP])]
    assert await input_ids(prompts, [Pair("A", "B")], lowercase=True) == [InputIds([CLS, 3, SEP, 4, SEP], 3)]


async def test_an_input_that_fills_the_model_is_taken_and_a_longer_one_is_refused(prompts: Prompts) -> None:
    assert len((await input_ids(prompts, ["a b c d"]))[0].ids) == 6
    with pytest.raises(PromptTooLong) as caught:
        await input_ids(prompts, ["a", "a b c d e"])
    assert (caught.value.max_model_len, caught.value.num_tokens) == (6, 7)


@pytest.mark.parametrize(("limit", "found"), [(6, [CLS, 3, 4, 5, 6, SEP]), (4, [CLS, 3, 4, SEP]), (2, [CLS, 3])])
async def test_a_text_is_cut_between_its_special_tokens(prompts: Prompts, limit: int, found: list[int]) -> None:
    assert await input_ids(prompts, ["a b c d e f g h"], truncate=limit) == [InputIds(found)]


async def test_token_ids_are_cut_at_their_end(prompts: Prompts) -> None:
    assert await input_ids(prompts, [[3, 4, 5, 6, 7, 8, 9]], truncate=3) == [InputIds([3, 4, 5])]


@pytest.mark.parametrize("token_id", [-1, 11])
async def test_unknown_token_ids_are_refused(prompts: Prompts, token_id: int) -> None:
    with pytest.raises(InvalidInput, match="below 11"):
        await input_ids(prompts, [[token_id]])


async def test_many_long_texts_keep_their_order(prompts: Prompts) -> None:
    texts = [f"{'abcdefgh'[number % 8]} {' ' * 20_000}" for number in range(12)]
    found = await asyncio.wait_for(input_ids(prompts, texts), 30)
    assert found == [InputIds([CLS, 3 + number % 8, SEP]) for number in range(12)]


async def test_the_texts_of_a_pair_stand_behind_each_other_and_the_second_begins_where_it_says(
    prompts: Prompts,
) -> None:
    assert await input_ids(prompts, [Pair("a", "b c")]) == [InputIds([CLS, 3, SEP, 4, 5, SEP], 3)]
    with pytest.raises(PromptTooLong):
        await input_ids(prompts, [Pair("a b", "c d")])


async def test_a_pair_is_cut_from_its_longer_text(prompts: Prompts) -> None:
    [found] = await input_ids(prompts, [Pair("a", "b c d e f")], truncate=6)
    assert found == InputIds([CLS, 3, SEP, 4, 5, SEP], 3)
    [found] = await input_ids(prompts, [Pair("a b c d", "e")], truncate=5)
    assert found == InputIds([CLS, 3, SEP, 7, SEP], 3)


class Counting(HFTokenizer):
    """Counts the characters that are tokenised."""

    num_chars = 0

    def encode(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        self.num_chars += len(text)
        return super().encode(text, add_special=add_special, parse_special=parse_special)


@pytest.fixture
def counting(prompts: Prompts) -> Counting:
    assert isinstance(prompts.tokenizer, HFTokenizer)
    prompts.tokenizer = tokenizer = Counting(prompts.tokenizer._tokenizer)
    return tokenizer


async def test_a_query_is_tokenised_once_for_all_of_its_documents(prompts: Prompts, counting: Counting) -> None:
    query = "a " * 30_000
    found = await input_ids(prompts, [Pair(query, "b")] * 200, truncate=6)
    assert found == [InputIds([CLS, 3, 3, SEP, 4, SEP], 4)] * 200
    assert counting.num_chars == len(query) + 200


async def test_a_pair_that_is_too_long_ends_the_work_at_once(prompts: Prompts, counting: Counting) -> None:
    with pytest.raises(PromptTooLong) as caught:
        await input_ids(prompts, [Pair(".".join("abcdefgh"), "b")] * 2000)
    assert caught.value.num_tokens == 18
    assert counting.num_chars == 15


@pytest.mark.parametrize("too_long", ["a " * 100_000, Pair("a " * 100_000, "b"), Pair("b", "a " * 100_000)])
async def test_a_text_of_too_many_words_is_refused_before_it_is_tokenised(
    prompts: Prompts, counting: Counting, too_long: str | Pair
) -> None:
    with pytest.raises(PromptTooLong) as caught:
        await input_ids(prompts, [too_long])
    assert caught.value.at_least
    assert counting.num_chars <= 1


@pytest.mark.parametrize("text", ["a b c " * 300_000, "a.b.c." * 300_000, f"a b{' ' * 2_000_000}c d e f g h"])
@pytest.mark.parametrize("limit", [1, 4, 6])
async def test_of_a_long_text_that_is_cut_as_little_is_tokenised_as_gives_the_same_tokens(
    prompts: Prompts, counting: Counting, text: str, limit: int
) -> None:
    whole = HFTokenizer.encode(counting, text)
    counting.num_chars = 0
    expected = [CLS, *whole[: limit - 2], SEP] if limit > 2 else [CLS]
    assert await input_ids(prompts, [text], truncate=limit) == [InputIds(expected)]
    assert counting.num_chars <= 3 * 65_536 or " " * 70_000 in text
    [pair] = await input_ids(prompts, [Pair("a", text)], truncate=6)
    assert pair == InputIds([CLS, 3, SEP, *whole[:2], SEP], 3)


QUERY_AND_TWO = Fields("documents", "query", 1)


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        (["a b c d e", "a", "b"], "query"),
        (["a", "a", "a b c d e"], "documents"),
        (["a ." * 9, "a"], "query"),
        ([Pair("a b c d", "a")], "query"),
        ([Pair("a " * 9, "a")], "query"),
        ([Pair("a b", "c"), Pair("a b", "c d")], "documents"),
        ([Pair("a", "b " * 9)], "documents"),
    ],
)
async def test_the_field_of_a_text_that_is_too_long_is_named(prompts: Prompts, inputs: list[Input], field: str) -> None:
    with pytest.raises(PromptTooLong) as caught:
        await input_ids(prompts, inputs, fields=QUERY_AND_TWO)
    assert caught.value.param == field


def test_the_fields_of_later_inputs_are_counted_from_there() -> None:
    fields = Fields("text_2", "text_1", 3)
    for skip in range(6):
        assert [fields.behind(skip).of(place) for place in range(6 - skip)] == [fields.of(at) for at in range(skip, 6)]
