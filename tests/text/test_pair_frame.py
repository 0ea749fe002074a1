"""Pairs are put together as the library does it, cut or whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from axon.text.pair_frame import PairFrame
from axon.text.tokenizer import HFTokenizer

WORDS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4}
SPECIAL = [("[CLS]", 1), ("[SEP]", 2)]
PROCESSORS = {
    "none": None,
    "bert": processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)),
    "roberta": processors.RobertaProcessing(("[SEP]", 2), ("[CLS]", 1)),
    "template": processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=SPECIAL
    ),
    "bare": processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=SPECIAL),
}
words = st.lists(st.sampled_from("abc"), max_size=8).map(" ".join)


def tokenizer_with(name: str) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if processor := PROCESSORS[name]:
        tokenizer.post_processor = processor
    return tokenizer


@pytest.mark.parametrize("name", PROCESSORS)
@given(first=words, second=words, limit=st.none() | st.integers(5, 20))
def test_a_pair_is_what_the_library_makes_of_it(name: str, first: str, second: str, limit: int | None) -> None:
    tokenizer = tokenizer_with(name)
    left, right = (tokenizer.encode(text, add_special_tokens=False) for text in (first, second))
    if limit is not None:
        num_left, num_right = PairFrame(tokenizer).lengths(len(left), len(right), limit)
        left.truncate(num_left)
        right.truncate(num_right)
    both = tokenizer.post_process(left, right)
    start = both.type_ids.index(1) if 1 in both.type_ids else 0
    assert HFTokenizer(tokenizer).pairs_of(first, limit)(second) == (both.ids, start)


def test_a_vocabulary_without_letters_shows_its_frame_too() -> None:
    tokenizer = Tokenizer(models.BPE({"1": 0, "[SEP]": 1}, []))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 1), ("[SEP]", 1))
    assert PairFrame(tokenizer).filled([0], [0, 0]) == ([1, 0, 1, 0, 0, 1], 3)
