"""The head in PyTorch, as EAGLE-3 has it: one decoder layer over the model's features and the token behind them."""

import torch
from torch import nn
from torch.nn import functional

from training.target import Rotary, Tensor, norm


class Head(nn.Module):
    """Guesses the token behind a pair of a position's features and the next token."""

    def __init__(self, *, hidden: int, heads: int, kv_heads: int, dim: int, inner: int, epsilon: float) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.dim, self.epsilon = heads, kv_heads, dim, epsilon
        self.fc = nn.Linear(3 * hidden, hidden, bias=False)
        self.query = nn.Linear(2 * hidden, heads * dim, bias=False)
        self.key = nn.Linear(2 * hidden, kv_heads * dim, bias=False)
        self.value = nn.Linear(2 * hidden, kv_heads * dim, bias=False)
        self.output = nn.Linear(heads * dim, hidden, bias=False)
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)
        self.input_norm, self.hidden_norm, self.mlp_norm, self.norm = (
            nn.Parameter(torch.ones(hidden)) for _ in range(4)
        )
        for each in self.parameters():
            if each.dim() == 2:
                nn.init.normal_(each, std=0.02)

    def unroll(self, features: Tensor, embedded: Tensor, rotary: Rotary, num_steps: int) -> list[Tensor]:
        """The rows of ``num_steps`` guesses in a row from each position on: [text, pair, hidden] for each step.

        ``features``: [text, pair, 3 x hidden], ``embedded``: the tokens behind them. Step j of pair p began at pair
        p - j: it sees the model's features up to there, and the head's own rows behind.
        """
        length = features.shape[1]
        cos, sin = rotary.cos[:length], rotary.sin[:length]
        positions = torch.arange(length, device=features.device)
        rows = self.fc(features)
        keys, values, found = list[Tensor](), list[Tensor](), list[Tensor]()
        for step in range(num_steps):
            inputs = torch.cat(
                (norm(embedded, self.input_norm, self.epsilon), norm(rows, self.hidden_norm, self.epsilon)), -1
            )
            query, key, value = (self._split(each(inputs)) for each in (self.query, self.key, self.value))
            query, key = rotary.rotate(query, cos, sin), rotary.rotate(key, cos, sin)
            share = self.heads // self.kv_heads
            keys.append(key.repeat_interleave(share, 1))
            values.append(value.repeat_interleave(share, 1))
            scores = (query @ keys[0].transpose(2, 3)).float()
            scores = scores.masked_fill(positions[None, :] > positions[:, None] - step, -torch.inf)
            own = [(query * _later(keys[m], step - m)).sum(-1, keepdim=True).float() for m in range(1, step + 1)]
            weights = (torch.cat((scores, *own), -1) * self.dim**-0.5).softmax(-1).to(value.dtype)
            weights = weights.nan_to_num()  # the first pairs of later steps see nothing, and are not counted
            seen = weights[..., :length] @ values[0]
            for m in range(1, step + 1):
                seen = seen + weights[..., length + m - 1, None] * _later(values[m], step - m)
            rows = rows + self.output(seen.transpose(1, 2).flatten(2))
            normed = norm(rows, self.mlp_norm, self.epsilon)
            rows = rows + self.down(functional.silu(self.gate(normed)) * self.up(normed))
            found.append(rows)
            rows = _later(rows, 1, dim=1)
        return found

    def named(self) -> dict[str, Tensor]:
        """The weights by their published names."""
        layer = "midlayer."
        return {
            "fc.weight": self.fc.weight,
            f"{layer}self_attn.q_proj.weight": self.query.weight,
            f"{layer}self_attn.k_proj.weight": self.key.weight,
            f"{layer}self_attn.v_proj.weight": self.value.weight,
            f"{layer}self_attn.o_proj.weight": self.output.weight,
            f"{layer}mlp.gate_proj.weight": self.gate.weight,
            f"{layer}mlp.up_proj.weight": self.up.weight,
            f"{layer}mlp.down_proj.weight": self.down.weight,
            f"{layer}input_layernorm.weight": self.input_norm,
            f"{layer}hidden_norm.weight": self.hidden_norm,
            f"{layer}post_attention_layernorm.weight": self.mlp_norm,
            "norm.weight": self.norm,
        }

    def _split(self, rows: Tensor) -> Tensor:
        return rows.view(*rows.shape[:2], -1, self.dim).transpose(1, 2)


def _later(rows: Tensor, num: int, dim: int = 2) -> Tensor:
    """The same rows, each ``num`` positions later, with zeros before."""
    if not num:
        return rows
    kept = rows.narrow(dim, 0, rows.shape[dim] - num)
    return torch.cat((torch.zeros_like(rows.narrow(dim, 0, num)), kept), dim)
