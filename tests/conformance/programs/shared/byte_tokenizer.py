"""A tokenizer folder as load generators want one: a token is a byte, as in the echo engine."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def make_byte_tokenizer() -> Path:
    """Writes it into the current folder; its path."""
    folder = Path("tokenizer").resolve()
    folder.mkdir()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: id for id, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return folder
