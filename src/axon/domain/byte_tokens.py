"""Tokens that are single bytes: ids 0 to 255 are the bytes, control tokens follow. Knows no text and no model.

The check of grammars, the echo engine and tests need no model's tokenizer: what holds for bytes holds for every one.
"""

NUM_BYTES = 256
BOS_ID, EOS_ID = NUM_BYTES, NUM_BYTES + 1
VOCAB_SIZE = NUM_BYTES + 2


class ByteTokens:
    """The tokens in the form that llguidance's ``TokenizerWrapper`` asks for."""

    def __init__(self, *, size: int = VOCAB_SIZE, eos_id: int = EOS_ID) -> None:
        """``size`` counts the control tokens too."""
        self.eos_token_id, self.bos_token_id = eos_id, None
        self.special_token_ids = list(range(NUM_BYTES, size))
        self.tokens = [bytes([id]) if id < NUM_BYTES else b"<%d>" % id for id in range(size)]

    def __call__(self, text: bytes) -> list[int]:
        return list(text)
