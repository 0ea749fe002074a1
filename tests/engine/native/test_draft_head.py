"""The kernels of a draft head against their plain twin; the same bits from every instruction set and any batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from axon.engine.load.architecture import read_architecture
from axon.engine.load.draft_head import DraftHead, read_head
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.draft_head import Guesses, NativeHead, head_bytes
from axon.engine.native.model import NativeModel
from axon.engine.native.packed_weights import ensure_packed
from axon.engine.pytorch.draft_head import PlainHead
from tests.engine.head_files import make_head, make_target
from tests.engine.native.builders import NUM_BLOCKS, blocks_of, make_rows, make_tokens

SHAPES: dict[str, dict[str, Any]] = {
    "padded": {"hidden_size": 72, "head_dim": 16, "vocab_size": 270},
    "whole": {"hidden_size": 64, "head_dim": 32, "num_attention_heads": 4},
}
Piece = tuple[int, int, list[int]]


@dataclass
class Pair:
    """A model and its head."""

    model: NativeModel
    head: NativeHead
    read: DraftHead
    folder: Path

    def compute(self, *pieces: Piece) -> None:
        self.model.step(make_rows(pieces))

    def draft(
        self, *pieces: Piece, drafts: list[int], least: float = 0.0, going: float = 0.0, heat: float = 1.0
    ) -> Guesses:
        counts = np.array(drafts, np.int32)
        heats, least_, going_ = (np.full(len(drafts), each, np.float32) for each in (heat, least, going))
        return self.head.draft(make_rows(pieces), counts, inverse_temperatures=heats, least=least_, going=going_)

    def rows(self, sequence: int, length: int) -> torch.Tensor:
        """What the model has kept for the head of a sequence's first tokens."""
        size = self.read.architecture.hidden_size
        stride = -(-size // GROUP_SIZE) * GROUP_SIZE
        blocks = self.model.blocks[blocks_of(sequence)][:, -32 * stride :]
        halves = np.ascontiguousarray(blocks).view(np.uint16).reshape(-1, stride)[:length, :size]
        return torch.from_numpy((halves.astype(np.uint32) << 16).view(np.float32))


def open_pair(folder: Path, head_folder: Path, *, instruction_set: str = "", threads: int = 2) -> Pair:
    architecture = read_architecture(folder)
    read = read_head(head_folder, architecture)
    packed = ensure_packed(architecture, folder, GROUP_SIZE)
    model = NativeModel(
        architecture,
        packed,
        num_blocks=NUM_BLOCKS,
        threads=threads,
        max_model_len=96,
        instruction_set=instruction_set,
        head_bytes=head_bytes(read.architecture),
    )
    head = NativeHead(model, packed, architecture, read, max_model_len=96, instruction_set=instruction_set)
    return Pair(model, head, read, folder)


@pytest.fixture(scope="module", params=[*SHAPES])
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root, own = tmp_path_factory.mktemp("pair"), request.param == "whole"
    target = make_target(root / "target", **SHAPES[request.param], tie_word_embeddings=not own)
    return target, make_head(root / "head", **SHAPES[request.param], own=own)


@pytest.fixture
def pair(folders: tuple[Path, Path], instruction_set: str) -> Iterator[Pair]:
    pair = open_pair(*folders, instruction_set=instruction_set)
    yield pair
    pair.model.close()


def plain_of(pair: Pair) -> PlainHead:
    from safetensors.torch import load_file

    tensors = load_file(pair.folder / "model.safetensors")
    embedding = tensors["model.embed_tokens.weight"]
    return PlainHead(pair.read, embedding, tensors.get("lm_head.weight", embedding))


def features_of(pair: Pair, tokens: list[int]) -> torch.Tensor:
    from training.target import Target

    target = Target(pair.folder, torch.device("cpu"), max_len=96, dtype=torch.float32)
    return target.read(torch.tensor([tokens]))[0][0]


def test_the_model_keeps_the_rows_that_the_twin_fuses(pair: Pair) -> None:
    tokens = make_tokens(1, 40)
    pair.compute((0, 0, tokens[:23]))
    pair.compute((0, 23, tokens[23:]), (1, 0, tokens[:5]))
    expected = plain_of(pair).fuse(features_of(pair, tokens))
    cosine = torch.nn.functional.cosine_similarity(pair.rows(0, 40), expected, dim=1)
    assert cosine.min() > 0.99
    assert torch.equal(pair.rows(1, 5), pair.rows(0, 5))


@pytest.mark.parametrize("length", [2, 17, 40])
def test_drafts_are_those_of_the_twin(pair: Pair, length: int) -> None:
    agreed = total = 0
    for seed in range(8):
        tokens = make_tokens(seed, length)
        pair.compute((seed, 0, tokens))
        [drafts] = pair.draft((seed, 0, tokens), drafts=[3]).drafts
        expected = plain_of(pair).draft(pair.rows(seed, length)[:-1], tokens, 3)
        # A guess that int8 decides otherwise leads elsewhere from there on.
        same = next((n for n, (a, b) in enumerate(zip(drafts, expected, strict=True)) if a != b), 3)
        agreed, total = agreed + same, total + min(same + 1, 3)
    assert agreed / total > 0.8


def test_a_head_that_sees_a_text_in_pieces_drafts_the_same(pair: Pair) -> None:
    texts = [make_tokens(seed, 40) for seed in range(3)]
    for number, tokens in enumerate(texts):
        pair.compute((number, 0, tokens))
    whole = [pair.draft((number, 0, tokens), drafts=[4]).drafts[0] for number, tokens in enumerate(texts)]
    pair.draft(*((number, 0, tokens[:18]) for number, tokens in enumerate(texts)), drafts=[0, 0, 0])
    pieces = [(number, 18, tokens[18:]) for number, tokens in enumerate(texts)]
    together = pair.draft(*pieces, drafts=[4, 1, 0])
    assert together.drafts == [whole[0], whole[1][:1], []]
    assert [num_rows for num_rows, _ in together.rounds] == [66, 1, 1, 1]
    assert pair.draft((0, 39, texts[0][39:]), drafts=[4]).drafts == [whole[0]], "its guesses are not kept"


def test_every_instruction_set_drafts_the_same(folders: tuple[Path, Path], pair: Pair) -> None:
    tokens = make_tokens(3, 33)
    scalar = open_pair(*folders, instruction_set="scalar", threads=1)
    for each in (scalar, pair):
        each.compute((0, 0, tokens))
    assert torch.equal(scalar.rows(0, 33), pair.rows(0, 33))
    assert scalar.draft((0, 0, tokens), drafts=[4]).drafts == pair.draft((0, 0, tokens), drafts=[4]).drafts
    scalar.model.close()


def test_it_drafts_no_more_than_it_is_sure_of(pair: Pair) -> None:
    tokens = make_tokens(4, 20)
    pair.compute((0, 0, tokens))
    assert pair.draft((0, 0, tokens), drafts=[4], least=1.01).drafts == [[]]
    assert len(pair.draft((0, 0, tokens), drafts=[4], least=0.0).drafts[0]) == 4
    assert len(pair.draft((0, 0, tokens), drafts=[4], going=1.01).drafts[0]) == 1
    counts = [len(pair.draft((0, 0, tokens), drafts=[4], least=each).drafts[0]) for each in np.linspace(0, 1, 30)]
    assert counts == sorted(counts, reverse=True)
    hot = [len(pair.draft((0, 0, tokens), drafts=[4], least=0.5, heat=heat).drafts[0]) for heat in (0.01, 1e4)]
    assert hot == [0, 4]


def test_a_model_without_a_head_keeps_nothing_for_one(folders: tuple[Path, Path]) -> None:
    architecture = read_architecture(folders[0])
    packed = ensure_packed(architecture, folders[0], GROUP_SIZE)
    plain = NativeModel(architecture, packed, num_blocks=4, threads=1, max_model_len=64)
    pair = open_pair(*folders)
    assert pair.model.blocks.shape[1] - plain.blocks.shape[1] == head_bytes(pair.read.architecture)
    logits = [np.empty((5, architecture.vocab_size), np.float32) for _ in range(2)]
    for model, each in zip((plain, pair.model), logits, strict=True):
        rows = make_rows(((0, 0, [1, 2, 3, 4, 5]),), num_blocks=1)
        model.step(rows, each)
    assert np.array_equal(logits[0], logits[1]), "a head changes no bit of its target"
    plain.close()
    pair.model.close()
