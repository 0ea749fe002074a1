"""A draft head in plain PyTorch, one text at a time: the twin that the kernels are compared with.

Row p of the head stands for the features of position p and the token behind it, and guesses the token after that. A
guess in a row behind it has the head's own row in place of features that nobody has computed yet.
"""

import torch
from torch.nn import functional

from axon.engine.load.draft_head import DraftHead
from axon.engine.pytorch.mlp import silu

Tensor = torch.Tensor


class PlainHead:
    """The head's weights in float32."""

    def __init__(self, head: DraftHead, embedding: Tensor, output: Tensor) -> None:
        """``embedding`` and ``output`` are the target's, [token, hidden]; they count where the head has none."""
        self._head, self._shape = head, head.architecture
        self._weights: dict[str, Tensor] = {}
        self._ids = torch.from_numpy(head.ids)
        self._embedding = self._take("embed_tokens.weight") if head.has_embedding else embedding
        self._output = self._take("lm_head.weight") if head.has_output else output[self._ids]
        self._frequencies = torch.tensor(self._shape.rope.frequencies(self._shape.head_dim))
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []

    def fuse(self, features: Tensor) -> Tensor:
        """The head's rows [position, hidden] of features [position, three inputs of layers]."""
        return functional.linear(features, self._take("fc.weight"))

    def draft(self, rows: Tensor, tokens: list[int], num_drafts: int) -> list[int]:
        """The likeliest tokens behind a text; ``rows`` are the fused features of all its tokens but the last."""
        self._keys, self._values = [], []
        for row, token in zip(rows, tokens[1:], strict=True):
            last = self._compute(row, token)
        drafts: list[int] = []
        while True:
            drafts.append(int(self._ids[self.logits(last).argmax()]))
            if len(drafts) == num_drafts:
                return drafts
            last = self._compute(last, drafts[-1])

    def logits(self, row: Tensor) -> Tensor:
        """Over the tokens that the head drafts."""
        return self._output @ self._normalise(row, "norm.weight")

    def _compute(self, row: Tensor, token: int) -> Tensor:
        """The head's row behind the next pair."""
        shape, position = self._shape, len(self._keys)
        both = (
            self._normalise(self._embedding[token], "layer.input_layernorm.weight"),
            self._normalise(row, "layer.hidden_norm.weight"),
        )
        query, key, value = (
            functional.linear(torch.cat(both), self._take(f"layer.self_attn.{name}_proj.weight")).view(
                -1, shape.head_dim
            )
            for name in "qkv"
        )
        self._keys.append(self._rotate(key, position).repeat_interleave(shape.group_size, 0))
        self._values.append(value.repeat_interleave(shape.group_size, 0))
        scores = (self._rotate(query, position)[:, None] * torch.stack(self._keys, 1)).sum(-1) * shape.query_scale
        seen = (scores.softmax(-1)[..., None] * torch.stack(self._values, 1)).sum(1)
        row = row + functional.linear(seen.flatten(), self._take("layer.self_attn.o_proj.weight"))
        inner = self._normalise(row, "layer.post_attention_layernorm.weight")
        gate, up = (functional.linear(inner, self._take(f"layer.mlp.{name}_proj.weight")) for name in ("gate", "up"))
        return row + functional.linear(silu(gate) * up, self._take("layer.mlp.down_proj.weight"))

    def _rotate(self, heads: Tensor, position: int) -> Tensor:
        angles = self._frequencies * position
        first, second = heads.chunk(2, -1)
        cos, sin = self._shape.rope.scale * angles.cos(), self._shape.rope.scale * angles.sin()
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)

    def _normalise(self, row: Tensor, name: str) -> Tensor:
        scale = torch.rsqrt(row.square().mean() + self._shape.rms_norm_eps)
        return row * scale * self._take(name)

    def _take(self, name: str) -> Tensor:
        if name not in self._weights:
            self._weights[name] = torch.tensor(self._head.take(name))
        return self._weights[name]
