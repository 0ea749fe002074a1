"""What trains the head that drafts for the default model: its guesses in a row, the chats it learns from, its files."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from tokenizers import Tokenizer, models, pre_tokenizers
from training.__main__ import commonest, save
from training.head import Head
from training.target import Rotary, Target, Tensor, feature_layers, norm
from training.texts import END_IDS, Drawing, write

from tests.engine.builders import make_tiny_llama

CPU = torch.device("cpu")
LENGTH = 12


def make_head() -> Head:
    torch.manual_seed(3)
    head = Head(hidden=32, heads=4, kv_heads=2, dim=8, inner=48, epsilon=1e-5)
    for each in head.parameters():
        if each.dim() == 2:
            torch.nn.init.normal_(each, std=0.2)
    return head


class OneByOne:
    """The head's rows of one text, pair by pair, as a server computes them."""

    def __init__(self, head: Head, rotary: Rotary) -> None:
        self._head, self._rotary = head, rotary
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []

    def take(self, rows: Tensor, embedded: Tensor) -> Tensor:
        head, position = self._head, len(self._keys)
        cos, sin = self._rotary.cos[position], self._rotary.sin[position]
        normed = (norm(embedded, head.input_norm, head.epsilon), norm(rows, head.hidden_norm, head.epsilon))
        query, key, value = (each(torch.cat(normed)).view(-1, head.dim) for each in (head.query, head.key, head.value))
        share = head.heads // head.kv_heads
        self._keys.append(self._rotary.rotate(key, cos, sin).repeat_interleave(share, 0))
        self._values.append(value.repeat_interleave(share, 0))
        scores = (self._rotary.rotate(query, cos, sin)[:, None] * torch.stack(self._keys, 1)).sum(-1)
        weights = (scores * head.dim**-0.5).softmax(-1)
        rows = rows + head.output((weights[..., None] * torch.stack(self._values, 1)).sum(1).flatten())
        inner = norm(rows, head.mlp_norm, head.epsilon)
        added: Tensor = head.down(torch.nn.functional.silu(head.gate(inner)) * head.up(inner))
        return rows + added


@torch.no_grad()
def test_guesses_in_a_row_are_those_of_one_pair_after_the_other() -> None:
    head, rotary = make_head(), Rotary(8, 10_000.0, LENGTH, CPU)
    features, embedded = torch.randn(1, LENGTH, 96), torch.randn(1, LENGTH, 32)
    unrolled = head.unroll(features, embedded, rotary, 4)
    for start in range(LENGTH - 4):
        reader = OneByOne(head, rotary)
        for pair in range(start + 1):
            rows = reader.take(head.fc(features[0, pair]), embedded[0, pair])
        for step in range(4):
            assert torch.allclose(rows, unrolled[step][0, start + step], atol=1e-4)
            rows = reader.take(rows, embedded[0, start + step + 1])


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(make_tiny_llama(tmp_path / "tiny", vocab_size=64), CPU, max_len=24, dtype=torch.float32)


def test_features_are_the_inputs_of_three_layers(target: Target) -> None:
    assert feature_layers(30) == (2, 15, 27)
    tokens = torch.randint(64, (2, 10))
    features, rows = target.read(tokens)
    assert features.shape[:2] == rows.shape[:2] == (2, 10)


def test_texts_grow_as_the_model_would_continue_them(target: Target) -> None:
    tokenizer = _words()
    openings = ["a b c <|im_start|>assistant\n", "a <|im_start|>user\n"]
    drawing = Drawing(target, 2, stretch=8)
    tokens, answers = write(drawing, target, tokenizer, openings, torch.zeros(2))
    assert not answers[0, :4].any()
    assert not answers[1, :2].any(), "the second chat begins with a question"
    _, rows = target.read(tokens)
    likeliest = (rows @ target.output.T).argmax(-1)
    drawn = answers[0, 1:] & ~torch.isin(tokens[0, 1:], torch.tensor(END_IDS))
    assert drawn.any()
    assert torch.equal(tokens[0, 1:][drawn], likeliest[0, :-1][drawn])


def test_the_head_is_written_as_such_heads_are_published(target: Target, tmp_path: Path) -> None:
    ids = commonest(torch.tensor([5, 5, 9, 9, 9, 31]), 4, 64)
    assert ids.tolist() == [0, 2, 5, 9]
    save(make_head(), target, ids, tmp_path / "head")
    with safe_open(tmp_path / "head" / "model.safetensors", "pt") as opened:
        assert (opened.get_tensor("d2t") + torch.arange(4)).tolist() == ids.tolist()
        assert opened.get_tensor("midlayer.self_attn.q_proj.weight").shape == (32, 64)
    config = json.loads((tmp_path / "head" / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert config["draft_vocab_size"] == 4


def _words() -> Tokenizer:
    names = ["<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n", "a", "b", "c"]
    vocab = {name: index + 10 for index, name in enumerate(names)}
    tokenizer = Tokenizer(models.WordLevel(vocab | {"?": 20}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    tokenizer.add_special_tokens(names[:3])
    return tokenizer
