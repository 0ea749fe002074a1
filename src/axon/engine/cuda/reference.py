"""What kernels compute, in plain PyTorch: the reference for them. Slow, and runs anywhere."""

from collections.abc import Sequence

import torch
from torch.nn import functional

from axon.engine.cuda.rows import ExpertBiases, Rows, quantise, widen
from axon.engine.load.architecture import Experts


def attend(
    queries: torch.Tensor,
    kv: torch.Tensor,
    layer: int,
    tables: torch.Tensor,
    slots: torch.Tensor,
    positions: torch.Tensor,
    *,
    window: int = 0,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of each query [row, head, dim] up to its own position, whose key and value are written already.

    ``kv`` is [block, layer, key or value, kv head, token, dim]. ``window``: the tokens that a query sees; 0: all.
    ``sinks`` [head]: scores that take part in the softmax.
    """
    block_size, dim = kv.shape[4], kv.shape[5]
    group_size = queries.shape[1] // kv.shape[3]
    rows = []
    for query, slot, position in zip(queries, slots.tolist(), positions.tolist(), strict=True):
        num_blocks = position // block_size + 1
        blocks = kv[tables[slot, :num_blocks].long(), layer].float()
        keys, values = blocks.permute(1, 2, 0, 3, 4).reshape(2, kv.shape[3], -1, dim)[:, :, : position + 1]
        heads = query.float().view(-1, group_size, dim)
        scores = heads @ keys.transpose(1, 2) * dim**-0.5
        if window:
            scores[:, :, : max(0, position + 1 - window)] = float("-inf")
        if sinks is not None:
            scores = torch.cat([scores, sinks.float().view(-1, group_size, 1)], dim=-1)
        weights = torch.softmax(scores, dim=-1)[:, :, : position + 1]
        rows.append((weights @ values).reshape(-1, dim))
    return torch.stack(rows).to(queries.dtype)


def add_norm(wide: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[Rows, torch.Tensor]:
    """Rows times the weights of a norm in fp8, and the factor of each row, which the kernels put into its scale."""
    return quantise(wide * weight.float()), torch.rsqrt(wide.square().mean(-1) + eps)


def gated(rows: Rows, gate_up: Rows) -> torch.Tensor:
    """silu of the upper half of a product times its lower half."""
    first, second = (widen(rows) @ widen(gate_up).T).chunk(2, -1)
    return functional.silu(first) * second


def mixture(
    rows: torch.Tensor,
    router: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    experts: Experts,
    biases: ExpertBiases | None = None,
) -> torch.Tensor:
    """What the chosen experts make of each row, in float32; ``gate_up`` and ``down`` are those of all experts, one
    below the other."""
    wide, shares, chosen = rows.float(), *choose(rows, router, experts, biases.router if biases else None)
    total = torch.zeros_like(wide)
    for number, (first, second) in enumerate(zip(gate_up.chunk(experts.count), down.chunk(experts.count), strict=True)):
        found, places = torch.where(chosen == number)
        product = wide[found] @ first.float().T
        if biases:
            product = product + biases.gate_up.chunk(experts.count)[number].float()
        gate, up = product.chunk(2, -1)
        inner = _gated(gate, up, experts).to(rows.dtype).float() @ second.float().T
        if biases:
            inner = inner + biases.down.chunk(experts.count)[number].float()
        total.index_add_(0, found, inner * shares[found, places, None])
    return total


def _gated(gate: torch.Tensor, up: torch.Tensor, experts: Experts) -> torch.Tensor:
    if experts.limit:
        gate, up = gate.clamp(max=experts.limit), up.clamp(-experts.limit, experts.limit) + 1
    return gate * torch.sigmoid(experts.slope * gate) * up


def choose(
    rows: torch.Tensor, router: torch.Tensor, experts: Experts, bias: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The shares of each row's experts and their numbers, the likeliest first, both [row, experts of a row]."""
    logits = rows.float() @ router.float().T
    likely = torch.softmax(logits if bias is None else logits + bias.float(), -1)
    shares, chosen = torch.topk(likely, experts.per_token, dim=-1)
    return shares / shares.sum(-1, keepdim=True) if experts.normalises else shares, chosen


def adapted(
    inputs: torch.Tensor,
    outputs: torch.Tensor,
    adapters: Sequence[Sequence[tuple[torch.Tensor, torch.Tensor]]],
    adapter_of: Sequence[int],
) -> torch.Tensor:
    """Outputs [row, output] and what each row's adapter adds to them, in float32; -1: the row has none.

    An adapter has two matrices [rank, input] and [output, rank] for each module whose outputs stand side by side.
    """
    wide = outputs.float().clone()
    for row, number in enumerate(adapter_of):
        if number >= 0:
            more = [second.float() @ (first.float() @ inputs[row].float()) for first, second in adapters[number]]
            wide[row] += torch.cat(more)
    return wide
