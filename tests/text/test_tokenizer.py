"""Ids and text, there and back."""

import itertools
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, pre_tokenizers, processors
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import WordPiece

from axon.errors import Misconfigured
from axon.text.detokenizer import Detokenizer
from axon.text.tokenizer import ByteTokenizer, HFTokenizer, Tokenizer, load_tokenizer
from tests.text.builders import CONTROL, make_rust_tokenizer, make_tokenizer

TOKENIZERS: list[Tokenizer] = [ByteTokenizer(), make_tokenizer()]
any_tokenizer = st.sampled_from(TOKENIZERS)


@given(any_tokenizer, st.text())
def test_text_survives_encoding_and_decoding(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(any_tokenizer, st.lists(st.integers(-5, 300)))
def test_pieces_put_together_equal_the_whole(tokenizer: Tokenizer, ids: list[int]) -> None:
    detokenizer = Detokenizer(tokenizer)
    pieces = [*map(detokenizer.push, ids), detokenizer.flush()]
    assert "".join(pieces) == tokenizer.decode(ids)


@given(any_tokenizer, st.text())
def test_a_piece_is_never_half_a_character(tokenizer: Tokenizer, text: str) -> None:
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.push(id) for id in tokenizer.encode(text)]
    assert "".join(pieces) == text
    assert detokenizer.flush() == ""


@given(st.lists(st.integers(0, 268)))
def test_decoding_equals_the_librarys(ids: list[int]) -> None:
    rust = make_rust_tokenizer()
    added = {"<tool>": rust.token_to_id("<tool>")}
    plain = [id for id in ids if id not in added.values()]
    assert make_tokenizer().decode(plain) == rust.decode(plain, skip_special_tokens=True)


def test_control_text_is_plain_unless_parsing_is_asked_for() -> None:
    tokenizer = make_tokenizer()
    assert tokenizer.encode("<|im_end|>", parse_special=True) == [2]
    plain = tokenizer.encode("<|im_end|>")
    assert not set(plain) & {0, 1, 2}
    assert tokenizer.decode(plain) == "<|im_end|>"
    assert tokenizer.control_texts == set(CONTROL)


def test_control_tokens_have_no_text_but_added_words_do() -> None:
    tokenizer = make_tokenizer()
    assert tokenizer.decode([1, 2]) == ""
    assert tokenizer.decode(tokenizer.encode("a<tool>b")) == "a<tool>b"


def test_byte_fallback_pieces_are_bytes() -> None:
    from tokenizers import Tokenizer as RustTokenizer
    from tokenizers import decoders
    from tokenizers.models import BPE

    rust = RustTokenizer(BPE(vocab={"<0xC3>": 0, "<0xA9>": 1, "▁caf": 2}, merges=[]))
    rust.decoder = decoders.ByteFallback()
    assert HFTokenizer(rust).decode([2, 0, 1]) == " café"


def test_a_text_begins_with_what_the_models_texts_begin_with_if_asked() -> None:
    rust = make_rust_tokenizer()
    [control] = rust.encode("<|im_start|>", add_special_tokens=False).ids
    rust.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", control)]
    )
    tokenizer = HFTokenizer(rust)
    assert tokenizer.encode("a", add_special=True) == [control, *tokenizer.encode("a")]
    assert tokenizer.encode("<|im_start|>", add_special=True)[0] == control
    assert ByteTokenizer().encode("a", add_special=True) == [97], "the bytes have no such token"


def test_a_folder_gives_its_tokenizer_and_no_folder_the_byte_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)
    make_rust_tokenizer().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 2}))
    assert load_tokenizer(tmp_path).eos_ids == {2}
    assert isinstance(load_tokenizer(None), ByteTokenizer)


def test_ids_that_do_not_exist_are_not_remembered() -> None:
    tokenizer = HFTokenizer(make_rust_tokenizer())
    before = len(tokenizer._bytes)
    for token_id in range(tokenizer.vocab_size, tokenizer.vocab_size + 100):
        assert tokenizer.token_bytes(token_id) == b""
    assert len(tokenizer._bytes) == before


def test_a_long_text_has_the_tokens_that_the_library_gives_it() -> None:
    text = "Some words, and their ends. " * 400
    for add_special in (False, True):
        found = make_tokenizer().encode(text, add_special=add_special)
        assert found == make_rust_tokenizer().encode(text, add_special_tokens=add_special).ids


def test_other_threads_run_while_a_long_text_is_tokenised() -> None:
    tokenizer, ended, turns = make_tokenizer(), threading.Event(), itertools.count()

    def count() -> None:
        while not ended.is_set():
            next(turns)

    thread = threading.Thread(target=count)
    thread.start()
    before = next(turns)
    tokenizer.encode("word " * 400_000)
    after = next(turns)
    ended.set()
    thread.join()
    assert after - before > 400_000  # if the lock were kept: two switches of threads, which are 5 ms each


def test_word_pieces_are_put_together_with_their_spaces() -> None:
    vocab = {word: number for number, word in enumerate(["[UNK]", "[CLS]", "a", "man", "play", "##ing", "!"])}
    rust = RustTokenizer(WordPiece(vocab, unk_token="[UNK]"))
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece()
    rust.add_special_tokens([AddedToken("[CLS]", special=True)])
    tokenizer = HFTokenizer(rust)
    assert tokenizer.decode([1, *tokenizer.encode("a man playing!"), -1, 1 << 40]) == "a man playing!"
