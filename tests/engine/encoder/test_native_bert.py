"""Encoders on the native kernels give PyTorch's vectors, each bitwise its own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.bert import BertEncoder
from axon.engine.encoder.native_bert import Dtype, NativeBert
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from axon.errors import Misconfigured
from tests.engine.encoder.models import made

INPUTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10], [11], list(range(17)), list(range(36)), list(range(16)), [12, 13, 14]]
SIZES: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4}
DTYPES: tuple[Dtype, ...] = ("float32", "int8")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    try:
        library.load()
    except NotBuilt as error:
        pytest.skip(f"no native kernels here: {error}")


def floats(vectors: list[bytes]) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    return np.stack([np.frombuffer(each, "<f4") for each in vectors])


def by_torch(folder: Path) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    return floats(BertEncoder(for_device(EngineConfig(), "cpu"), folder).encode(INPUTS))


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "max_tokens", "lasttoken"])
def test_its_vectors_are_those_of_pytorch(tmp_path: Path, pooling: str) -> None:
    folder = made(tmp_path / "model", pooling=pooling, **SIZES)
    found = floats(NativeBert(folder, threads=2).encode(INPUTS))
    np.testing.assert_allclose(found, by_torch(folder), atol=3e-6)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_it_has_every_activation_that_pytorch_has(tmp_path: Path, activation: str) -> None:
    folder = made(tmp_path / "model", hidden_act=activation, **SIZES)
    found = floats(NativeBert(folder, threads=1).encode(INPUTS))
    np.testing.assert_allclose(found, by_torch(folder), atol=3e-6)


def test_without_normalisation_and_from_another_first_position(tmp_path: Path) -> None:
    folder = made(tmp_path / "model", modules=False, model_type="xlm-roberta", pad_token_id=1, **SIZES)
    found = floats(NativeBert(folder, threads=2).encode(INPUTS))
    np.testing.assert_allclose(found, by_torch(folder), rtol=1e-5, atol=1e-5)


def test_int8_is_close_to_float32(tmp_path: Path) -> None:
    folder = made(tmp_path / "model", **SIZES)
    found = floats(NativeBert(folder, threads=2, dtype="int8").encode(INPUTS))
    assert np.einsum("id,id->i", found, by_torch(folder)).min() > 0.999


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_vector_is_bitwise_the_same_alone_in_any_batch_and_with_any_threads(tmp_path: Path, dtype: Dtype) -> None:
    folder = made(tmp_path / "model", **SIZES)
    one, three = NativeBert(folder, threads=1, dtype=dtype), NativeBert(folder, threads=3, dtype=dtype)
    alone = [one.encode([each])[0] for each in INPUTS]
    assert one.encode(INPUTS) == alone
    assert three.encode(INPUTS[::-1]) == alone[::-1]
    assert three.encode([INPUTS[1]] * 40) == [alone[1]] * 40


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_instruction_set_computes_the_same_bits_as_plain_cpp(tmp_path: Path, dtype: Dtype) -> None:
    folder = made(tmp_path / "model", **SIZES)
    plain = NativeBert(folder, threads=2, dtype=dtype, instruction_set="scalar").encode(INPUTS)
    for name in library.INSTRUCTION_SETS:
        if library.instruction_set(library.load(), name):
            assert NativeBert(folder, threads=2, dtype=dtype, instruction_set=name).encode(INPUTS) == plain


def test_between_two_stages_the_cores_may_be_passed_on(tmp_path: Path) -> None:
    calls: list[int] = []
    encoder = NativeBert(made(tmp_path / "model", **SIZES), threads=2, between=lambda: calls.append(1))
    encoder.encode(INPUTS)
    assert len(calls) == 2 * 2 - 1  # attention and MLP of two layers


def test_the_second_text_of_a_pair_has_the_second_type(tmp_path: Path) -> None:
    encoder = NativeBert(made(tmp_path / "model", **SIZES), threads=1)
    alone = encoder.encode(INPUTS)
    pairs = encoder.encode(INPUTS, [0, 3, 0, 0, 0, 0, 0])
    assert pairs[1] != alone[1]
    assert pairs[:1] + pairs[2:] == alone[:1] + alone[2:]


@pytest.mark.parametrize("sizes", [{"hidden_size": 72}, {"intermediate_size": 50}, {"num_attention_heads": 8}])
def test_sizes_that_do_not_fill_vectors_are_refused(tmp_path: Path, sizes: dict[str, int]) -> None:
    with pytest.raises(Misconfigured, match="no encoders of"):
        NativeBert(made(tmp_path / "model", **{**SIZES, **sizes}), threads=1)


SCARCE = """
import resource, sys
from pathlib import Path
from axon.engine.encoder.native_bert import NativeBert

bert = NativeBert(Path(sys.argv[1]), threads=1)
[alone] = bert.encode([list(range(30))])
inputs = [list(range(30))] * 8000
pages = int(Path("/proc/self/statm").read_text().split()[0])
unlimited = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20), unlimited[1]))
try:
    bert.encode(inputs)
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, unlimited)
assert bert.encode([list(range(30))]) == [alone]
assert bert.encode(inputs[:2000]) == [alone] * 2000
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits memory as Linux does")
def test_a_batch_without_memory_fails_alone(tmp_path: Path) -> None:
    folder = made(tmp_path / "model", **SIZES)
    ran = subprocess.run(
        [sys.executable, "-c", SCARCE, str(folder)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "no memory for 240000 tokens\n"), ran.stderr
