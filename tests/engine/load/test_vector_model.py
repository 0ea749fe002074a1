"""Models that give vectors, and what they weigh."""

from pathlib import Path

from axon.engine.load.encoder import Encoder
from axon.engine.load.pooled_decoder import PooledDecoder
from axon.engine.load.vector_model import check_vector_model, gives_vectors, read_vector_model, weight_bytes
from tests.engine.encoder.models import decoder, made
from tests.weights.models import make_model


def test_encoders_and_pooled_decoders_give_vectors_and_chat_models_do_not(tmp_path: Path) -> None:
    made(tmp_path / "encoder")
    decoder(tmp_path / "decoder", "Qwen3")
    make_model(tmp_path / "chat")
    found = [read_vector_model(tmp_path / name) for name in ("encoder", "decoder")]
    assert [type(each) for each in found] == [Encoder, PooledDecoder]
    for name, each in zip(("encoder", "decoder"), found, strict=True):
        assert gives_vectors(tmp_path / name)
        check_vector_model(tmp_path / name, each)
    assert not gives_vectors(tmp_path / "chat")


def test_weights_are_lighter_in_int8_but_for_the_tables(tmp_path: Path) -> None:
    model = read_vector_model(made(tmp_path / "model"))
    table = sum(
        shape[0] * (shape[1] if shape[1:] else 1)
        for name, shape in model.tensor_shapes().items()
        if name.startswith("embeddings.")
    )
    whole = weight_bytes(model, "auto")
    assert whole == weight_bytes(model, "float32") == 2 * weight_bytes(model, "bfloat16")
    assert weight_bytes(model, "int8") == 4 * table + int((whole - 4 * table) / 4 * 1.25)
