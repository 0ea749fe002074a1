"""Incremental detokenizer: token ids to text, whole characters only. Knows no stop strings and no end of a stream."""

import codecs

from axon.text.tokenizer import Tokenizer


class Detokenizer:
    """Detokenizer of one choice. The pieces joined equal the decoding of all ids at once; each takes constant time."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """Returns the characters that this token completes; control tokens give none."""
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        """Ends the text: bytes of a character that never became whole come out as U+FFFD."""
        return self._decoder.decode(b"", final=True)
