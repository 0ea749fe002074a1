"""A model's tokens as llguidance takes them: their bytes, which of them end an answer, how they are cut from text."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from axon.domain.byte_tokens import EOS_ID, VOCAB_SIZE, ByteTokens
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from llguidance import LLTokenizer


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of one model."""

    tokenizer: "LLTokenizer"

    @property
    def eos_ids(self) -> frozenset[int]:
        """The tokens that end an answer: allowed only where the grammar may end."""
        return frozenset(self.tokenizer.eos_tokens)

    @property
    def num_words(self) -> int:
        """Words of 32 bits in a mask."""
        return -(-self.tokenizer.vocab_size // 32)


def read_vocabulary(model_dir: Path, *, size: int, eos_ids: Collection[int]) -> Vocabulary:
    """The vocabulary of a model folder, with ``size`` tokens as its logits have; raises ``Misconfigured``.

    llguidance reads it while it holds Python's lock (the GIL), in which time no step begins: for 0.4 s of a core and
    49,152 tokens. So it is read in two pieces, of about 0.3 s and 0.2 s, and steps run between them.
    """
    path = model_dir / "tokenizer.json"
    if not path.is_file():
        raise Misconfigured(f"grammars need the model's tokenizer, but {model_dir} has no tokenizer.json")
    try:
        from llguidance import LLTokenizer

        bare = LLTokenizer(str(path), n_vocab=size, eos_token=sorted(eos_ids) or None, slices=[])
        time.sleep(0)  # lets go of the lock, so that a step that waits for it goes first
        return Vocabulary(bare.with_slices(LLTokenizer.general_slices()))
    except (ImportError, ValueError) as error:
        raise Misconfigured(f"grammars cannot be used with the tokenizer of {model_dir}: {error}") from error


def byte_vocabulary(*, size: int = VOCAB_SIZE, eos_id: int = EOS_ID) -> Vocabulary:
    """The bytes 0 to 255, and control tokens behind them; it needs no file."""
    from llguidance import LLTokenizer, TokenizerWrapper

    wrapper = TokenizerWrapper(ByteTokens(size=size, eos_id=eos_id))
    return Vocabulary(LLTokenizer(wrapper, n_vocab=size, eos_token=[eos_id]))
