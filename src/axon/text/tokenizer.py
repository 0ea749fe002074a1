"""Text to token ids and back. Knows no chat, no template and no model."""

import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from tokenizers import Tokenizer as RustTokenizer

from axon.domain.byte_tokens import EOS_ID, NUM_BYTES, VOCAB_SIZE
from axon.errors import Misconfigured
from axon.text.pair_frame import PairFrame
from axon.text.pair_lengths import pair_lengths

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
_LONG_CHARS = 4096
"""A text of so many characters takes the tokenizer milliseconds."""


EncodePair = Callable[[str], tuple[list[int], int]]
"""Returns the ids of a first text and this second one with the model's special tokens around and between them, and the
index from which on they are the second's, 0 if the model does not tell them apart."""


class Tokenizer(Protocol):
    """Operations of a tokenizer that prompts and answers need."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def max_token_chars(self) -> int:
        """Characters of the longest token: a text has at least its length divided by this many tokens."""
        ...

    @property
    def eos_ids(self) -> frozenset[int]: ...
    @property
    def control_texts(self) -> frozenset[str]:
        """Texts of the control tokens."""
        ...

    def encode(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """Ids of a text. Control tokens written out in it stay plain text unless ``parse_special``.

        ``add_special`` adds the model's begin-of-text and end-of-text tokens.
        """
        ...

    def pairs_of(self, first: str, limit: int | None = None) -> EncodePair:
        """Encodes pairs with this first text, which is tokenised here once. ``limit`` cuts the longer text first."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token, which may be part of a character; empty for a control token or an unknown id."""
        ...

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text of the ids; bytes that are no UTF-8 become U+FFFD."""
        ...


def load_tokenizer(model_dir: Path | None) -> Tokenizer:
    """The tokenizer of a model folder, or the byte tokenizer where there is no model; raises Misconfigured."""
    return HFTokenizer.load(model_dir) if model_dir else ByteTokenizer()


class ByteTokenizer:
    """Ids 0 to 255 are the bytes of UTF-8; two control tokens follow."""

    vocab_size = VOCAB_SIZE
    max_token_chars = 1
    eos_ids = frozenset({EOS_ID})
    control_texts: frozenset[str] = frozenset()

    def encode(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """The bytes of the text, and nothing else: control tokens have no text here, and no text begins with one."""
        return [*text.encode()]

    def pairs_of(self, first: str, limit: int | None = None) -> EncodePair:
        """Both texts with an end token between them."""
        before = first.encode()

        def encode(second: str) -> tuple[list[int], int]:
            after, num_before = second.encode(), len(before)
            if limit is not None:
                num_before, num_after = pair_lengths(len(before), len(after), limit - 1)
                after = after[:num_after]
            return [*before[:num_before], EOS_ID, *after], num_before + 1 if after else 0

        return encode

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if 0 <= token_id < NUM_BYTES else b""

    def decode(self, token_ids: Iterable[int]) -> str:
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")


class HFTokenizer:
    """A tokenizer.json as Hugging Face folders have them."""

    def __init__(self, tokenizer: RustTokenizer, eos_ids: frozenset[int] = frozenset()) -> None:
        self._tokenizer = tokenizer
        self.eos_ids = eos_ids
        self.vocab_size = tokenizer.get_vocab_size()
        added = tokenizer.get_added_tokens_decoder()
        self._special_ids = frozenset(id for id, token in added.items() if token.special)
        self.control_texts = frozenset(added[id].content for id in self._special_ids)
        self._bytes = {id: token.content.encode() for id, token in added.items() if id not in self._special_ids}
        decoder = _decoder_of(tokenizer)
        self._is_byte_level = "ByteLevel" in json.dumps(decoder)
        self._is_word_piece = isinstance(decoder, dict) and decoder.get("type") == "WordPiece"

    @classmethod
    def load(cls, model_dir: Path) -> "HFTokenizer":
        """Reads tokenizer.json and the end tokens of a model folder; raises Misconfigured."""
        path = model_dir / "tokenizer.json"
        if not path.is_file():
            raise Misconfigured(
                f"{model_dir} has no tokenizer.json, by which Axon reads and writes text whatever the engine; of other "
                "tokenizer files transformers makes one: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            )
        try:
            tokenizer = RustTokenizer.from_file(str(path))
        except Exception as error:  # the library raises no narrower class
            raise Misconfigured(f"{path} cannot be read: {error}") from error
        tokenizer.no_truncation()  # embedding models' files cut and pad every text
        tokenizer.no_padding()
        return cls(tokenizer, _read_eos_ids(model_dir))

    @cached_property
    def max_token_chars(self) -> int:
        return max(map(len, self._tokenizer.get_vocab()))

    @cached_property
    def _plain(self) -> RustTokenizer:
        """A copy that does not parse control tokens. It is a second object, because the switch is not thread-safe."""
        plain = RustTokenizer.from_str(self._tokenizer.to_str())
        plain.encode_special_tokens = True
        return plain

    def encode(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        has_control_text = any(control in text for control in self.control_texts)
        tokenizer = self._plain if has_control_text and not parse_special else self._tokenizer
        if len(text) < _LONG_CHARS:
            ids: list[int] = tokenizer.encode(text, add_special_tokens=add_special).ids
        else:  # a batch of one: unlike ``encode``, it lets other threads run meanwhile
            ids = tokenizer.encode_batch_fast([text], add_special_tokens=add_special)[0].ids
        return ids

    @cached_property
    def _frame(self) -> PairFrame:
        return PairFrame(self._tokenizer)

    def pairs_of(self, first: str, limit: int | None = None) -> EncodePair:
        frame, left = self._frame, self.encode(first)
        num_first, left = len(left), left[:limit]

        def encode(second: str) -> tuple[list[int], int]:
            right = self.encode(second)
            if limit is None:
                return frame.filled(left, right)
            num_left, num_right = frame.lengths(num_first, len(right), limit)
            ids, second_start = frame.filled(left[:num_left], right[:num_right])
            return ids[:limit], second_start if second_start < limit else 0

        return encode

    def token_bytes(self, token_id: int) -> bytes:
        known = self._bytes.get(token_id)
        if known is None:
            known = self._find_bytes(token_id)
            if 0 <= token_id < self.vocab_size:  # bounds the cache
                self._bytes[token_id] = known
        return known

    def decode(self, token_ids: Iterable[int]) -> str:
        if self._is_word_piece:  # an encoder's: its tokens have no text of their own, as none has the space before it
            return str(self._tokenizer.decode([each for each in token_ids if 0 <= each < 1 << 32]))
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")

    def _find_bytes(self, token_id: int) -> bytes:
        piece = self._tokenizer.id_to_token(token_id) if 0 <= token_id < 1 << 32 else None
        if piece is None or token_id in self._special_ids:
            return b""
        if self._is_byte_level:
            return bytes(_BYTE_OF[char] for char in piece) if _BYTE_OF.keys() >= set(piece) else piece.encode()
        if match := _BYTE_FALLBACK.match(piece):
            return bytes([int(match[1], 16)])
        return piece.replace("▁", " ").encode()


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE writes printable Latin-1 bytes as themselves and the others as characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    shifted = {chr(0x100 + index): byte for index, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | shifted


_BYTE_OF = _byte_alphabet()


def _decoder_of(tokenizer: RustTokenizer) -> Any:
    return json.loads(tokenizer.to_str())["decoder"]


def _read_eos_ids(model_dir: Path) -> frozenset[int]:
    for name in ("generation_config.json", "config.json"):
        path = model_dir / name
        try:
            config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except (ValueError, RecursionError) as error:
            raise Misconfigured(f"{path} cannot be read: {error}") from None
        if not isinstance(config, dict):
            raise Misconfigured(f"{path} cannot be read: it is no JSON object")
        eos = config.get("eos_token_id")
        ids = [] if eos is None else eos if isinstance(eos, list) else [eos]
        if not all(type(each) is int for each in ids):
            raise Misconfigured(f"{path} cannot be read: eos_token_id is neither a number nor a list of numbers")
        if eos is not None:
            return frozenset(ids)
    return frozenset()
