"""Inputs of a model that gives vectors as token ids: within its length or cut to it. Knows no weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from axon.errors import InvalidInput, PromptTooLong
from axon.sessions.prompt import Prompts
from axon.text.tokenizer import EncodePair, Tokenizer

_PIECE_CHARS = 1 << 16
"""Texts are tokenised in pieces of about this many characters. Other requests' prompts are tokenised between them."""
_LONG_CHARS = 1 << 16
"""A text that is longer, and is to be cut, is tokenised at its beginning alone."""
_MARGIN = 256
"""Tokens of a beginning that are not used: where it ends, its tokens may be others than those of the whole text. A word
that is cut may have 100 tokens where the whole word has one."""
_CHARS_PER_TOKEN = 8


class Pair(NamedTuple):
    """Two texts that a cross-encoder reads together."""

    first: str
    second: str


Input = str | list[int] | Pair
"""A text, its token ids, or a pair of texts."""


class InputIds(NamedTuple):
    """The token ids of one input."""

    ids: list[int]
    second_start: int = 0
    """Index at which the second text of a pair begins; 0 for a single text."""


class Fields(NamedTuple):
    """The fields of a request that its inputs come from; an error about an input names the one at fault."""

    others: str
    """The field of the other inputs, and of the second text of each pair."""
    first: str = ""
    """The field of the first ``num_first`` inputs, and of the first text of each pair."""
    num_first: int = 0

    def of(self, place: int) -> str:
        """The field of a single text or of token ids."""
        return self.first if place < self.num_first else self.others

    def behind(self, skip: int) -> "Fields":
        """The fields of the inputs behind the first ``skip``."""
        return self._replace(num_first=max(0, self.num_first - skip))


_INPUT = Fields("input")


async def input_ids(
    prompts: Prompts,
    inputs: Sequence[Input],
    *,
    fields: Fields = _INPUT,
    lowercase: bool = False,
    truncate: int | None = None,
) -> list[InputIds]:
    """Token ids of each input. ``truncate`` cuts every input to this many tokens, at most the model's length. Raises
    ``PromptTooLong`` for an input that is too long, with the field that it came from."""
    limit = prompts.max_model_len if truncate is None else truncate
    encoder = _Encoder(prompts, fields, lowercase, limit if truncate is not None else None)
    found: list[InputIds] = []
    for piece in _pieces(inputs):
        found += await prompts.run_many(partial(encoder.encoded, piece, len(found)), sum(map(_size, piece)))
    return found


def _size(given: Input) -> int:
    return len(given.first) + len(given.second) if isinstance(given, Pair) else len(given)


def _pieces(inputs: Sequence[Input]) -> Iterator[list[Input]]:
    piece: list[Input] = []
    size = 0
    for each in inputs:
        piece.append(each)
        size += _size(each)
        if size >= _PIECE_CHARS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


class _Encoder:
    """Tokenises the inputs of one request, a first text that many pairs share only once. No more than the ids of inputs
    that fit is kept."""

    def __init__(self, prompts: Prompts, fields: Fields, lowercase: bool, limit: int | None) -> None:
        self._tokenizer, self._max_model_len = prompts.tokenizer, prompts.max_model_len
        self._fields, self._lowercase, self._limit = fields, lowercase, limit
        self._first: str | None = None
        self._encode_pair: EncodePair | None = None

    def encoded(self, inputs: Sequence[Input], place: int) -> list[InputIds]:
        """The ids of some inputs, the first of which has this place among all."""
        return [self._ids(each, place + at) for at, each in enumerate(inputs)]

    def _ids(self, given: Input, place: int) -> InputIds:
        match given:
            case Pair(first, second):
                return self._pair_ids(first, second)
        with _blaming(self._fields.of(place)):
            if isinstance(given, str):
                ids = _text_ids(self._tokenizer, self._plain(given), self._limit)
            else:
                ids = _given_ids(self._tokenizer, given, self._limit)
            self._check(len(ids))
        return InputIds(ids)

    def _pair_ids(self, first: str, second: str) -> InputIds:
        if self._encode_pair is None or first != self._first:
            with _blaming(self._fields.first):
                self._encode_pair = self._tokenizer.pairs_of(self._plain(first), self._limit)
                self._check(len(self._encode_pair("")[0]))
            self._first = first
        with _blaming(self._fields.others):
            ids, second_start = self._encode_pair(self._plain(second))
            if not ids:
                raise InvalidInput("An input has no tokens.")
            self._check(len(ids))
        return InputIds(ids, second_start)

    def _check(self, num_tokens: int) -> None:
        if num_tokens > self._max_model_len:
            raise PromptTooLong(max_model_len=self._max_model_len, num_tokens=num_tokens)

    def _plain(self, text: str) -> str:
        """The text as the model reads it, or enough of it where it is to be cut. Raises ``PromptTooLong`` before a text
        is tokenised that has more words than the model takes tokens, and is not to be cut."""
        if self._limit is not None:
            text = _beginning(self._tokenizer, text, self._limit)
        elif len(text) > self._max_model_len:
            num_words = len(text.split(maxsplit=self._max_model_len))
            if num_words > self._max_model_len:
                raise PromptTooLong(max_model_len=self._max_model_len, num_tokens=num_words, at_least=True)
        return text.lower() if self._lowercase else text


@contextmanager
def _blaming(field: str) -> Iterator[None]:
    """Names the field at fault in errors about its text."""
    try:
        yield
    except InvalidInput as error:
        error.param = error.param or field or None
        raise


def _beginning(tokenizer: Tokenizer, text: str, limit: int) -> str:
    """A beginning of a long text that has more tokens than it is cut to; a text that is not long stays whole."""
    size = max(_LONG_CHARS, _CHARS_PER_TOKEN * (limit + _MARGIN))
    while size < len(text):
        if len(tokenizer.encode(text[:size])) >= limit + _MARGIN:
            return text[:size]
        size *= 4
    return text


def _text_ids(tokenizer: Tokenizer, text: str, limit: int | None) -> list[int]:
    ids = tokenizer.encode(text, add_special=True)
    if not ids:
        raise InvalidInput("An input has no tokens.")
    return ids if limit is None or len(ids) <= limit else _cut(ids, tokenizer.encode(text), limit)


def _cut(ids: list[int], plain: list[int], limit: int) -> list[int]:
    """The first tokens of a text between its special tokens; the special tokens stay where there is room for them."""
    num_special = len(ids) - len(plain)
    if not 0 < num_special < limit:
        return ids[:limit]
    begin = next((at for at in range(num_special + 1) if ids[at : at + len(plain)] == plain), num_special)
    return [*ids[:begin], *plain[: limit - num_special], *ids[begin + len(plain) :]]


def _given_ids(tokenizer: Tokenizer, ids: list[int], limit: int | None) -> list[int]:
    if not all(0 <= token_id < tokenizer.vocab_size for token_id in ids):
        raise InvalidInput(f"Token ids must be below {tokenizer.vocab_size}.")
    return ids if limit is None else ids[:limit]
