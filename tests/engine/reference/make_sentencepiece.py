"""Trains a small SentencePiece model and writes what it makes of some texts. Knows nothing of Axon.

    python -m tests.engine.reference.make_sentencepiece

Needs sentencepiece, which need not be in Axon's own environment. Written beside this file: the pieces with scores and
kinds, as GGUF files have them, and each text's ids.
"""

import io
import json
from pathlib import Path

import sentencepiece  # type: ignore[import-not-found]

from tests.engine.reference.prompts import TEXTS
from tests.engine.reference.sentences import SENTENCES

VOCABULARY_SIZE = 900


def main() -> None:
    """As Llama's and Mistral's were trained: BPE, bytes for what is unknown, digits alone, spaces kept."""
    lines = [line for text in TEXTS for line in text.split("\n")] * 3
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=file,
        vocab_size=VOCABULARY_SIZE,
        model_type="bpe",
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        character_coverage=0.99,
        user_defined_symbols=["[INST]"],
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    ids = range(model.get_piece_size())
    content = {
        "sentencepiece": sentencepiece.__version__,
        "tokens": [model.id_to_piece(id) for id in ids],
        "scores": [model.get_score(id) for id in ids],
        "kinds": [_kind(model, id) for id in ids],
        "ids": [model.encode(text) for text in SENTENCES],
    }
    (Path(__file__).parent / "sentencepiece.json").write_text(json.dumps(content) + "\n")


def _kind(model: sentencepiece.SentencePieceProcessor, id: int) -> int:
    if model.is_unknown(id):
        return 2
    if model.is_control(id):
        return 3
    if model.id_to_piece(id) == "[INST]":
        return 4
    return 6 if model.is_byte(id) else 1


if __name__ == "__main__":
    main()
