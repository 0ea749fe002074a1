"""The collectives of a group of ranks within a step: all-reduce, gather, broadcast. Knows no model.

On a CPU (Gloo) a sum adds the ranks' parts in the order of their ranks, wherever a row stands in the batch, so results
stay batch-invariant. On GPUs (NCCL) the library chooses the order.
"""

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from axon.engine.parallel.partition import Share
from axon.engine.parallel.traffic import gathered_bytes, summed_bytes

COLLECTIVE_S = 60.0
"""Timeout of a collective, in seconds; a rank that dies is noticed sooner, see ``axon.engine.ranks.link``."""


Store = Any
"""A key-value store of torch.distributed's."""


def make_store(host: str) -> Store:
    """The leading rank's store, at a free port of this address alone."""
    listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    return _store(host, listener.getsockname()[1], True, master_listen_fd=listener.detach())


def find_store(host: str, port: int) -> Store:
    """The leading rank's store, as another rank connects to it."""
    return _store(host, port, False)


def _store(host: str, port: int, leads: bool, **more: Any) -> Store:
    timeout = timedelta(seconds=COLLECTIVE_S)
    return distributed.TCPStore(  # type: ignore[attr-defined]
        host, port, None, leads, timeout, wait_for_workers=False, **more
    )


@dataclass(slots=True)
class Traffic:
    """Collectives and bytes that a rank has sent, by the formulas of ``axon.engine.parallel.traffic``."""

    num_sums: int = 0
    num_gathers: int = 0
    sent_bytes: int = 0


class Alone:
    """A group of one rank: every collective is the identity."""

    share = Share()
    is_cut = False
    """Whether the model is cut over several ranks."""
    records = True
    """Whether its collectives can be recorded in a CUDA graph."""

    def __init__(self) -> None:
        self.traffic = Traffic()

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def add_up(self, part: torch.Tensor) -> torch.Tensor:
        """All-reduce: the sum over all ranks, on every rank."""
        return part

    def gather(self, part: torch.Tensor) -> torch.Tensor:
        """Gather: the columns of all ranks side by side; whole on the leading rank only."""
        return part

    def tell(self, tensor: torch.Tensor) -> None:
        """Broadcast: overwrites the tensor with the leading rank's."""

    def least(self, number: int) -> int:
        """All-reduce: the minimum over all ranks."""
        return number

    def common(self, candidates: Iterable[int]) -> tuple[int, ...]:
        """The candidates that all ranks have, in order."""
        return tuple(candidates)


class TorchGroup:
    """Ranks over torch.distributed. ``meet`` waits until all have loaded and returns the store where they connect."""

    def __init__(self, share: Share, device: torch.device, meet: Callable[[], Store], *, nccl: bool) -> None:
        self.share = share
        self.is_cut = True
        self.traffic = Traffic()
        self.records = nccl
        self._device = device
        self._meet = meet
        self._nccl = nccl

    def connect(self) -> None:
        """Joins the process group, once the model is loaded."""
        distributed.init_process_group(
            "nccl" if self._nccl else "gloo",
            store=self._meet(),
            rank=self.share.rank,
            world_size=self.share.size,
            timeout=timedelta(seconds=COLLECTIVE_S),
            device_id=self._device if self._nccl else None,
        )

    def close(self) -> None:
        """Leaves the process group."""
        if distributed.is_initialized():
            distributed.destroy_process_group()

    def add_up(self, part: torch.Tensor) -> torch.Tensor:
        """All-reduce: the sum over all ranks, on every rank."""
        self.traffic.num_sums += 1
        self.traffic.sent_bytes += summed_bytes(part.numel(), part.element_size(), self.share.size)
        if self._nccl:
            distributed.all_reduce(part)
            return part
        return self._in_order(part.cpu()).to(part.device)

    def gather(self, part: torch.Tensor) -> torch.Tensor:
        """Gather: the columns of all ranks side by side; whole on the leading rank only."""
        self.traffic.num_gathers += 1
        self.traffic.sent_bytes += gathered_bytes(part.numel(), part.element_size(), self.share.rank)
        here = part.contiguous() if self._nccl else part.cpu().contiguous()
        parts = [torch.empty_like(here) for _ in range(self.share.size)] if self.share.leads else None
        distributed.gather(here, parts, dst=0)
        return torch.cat(parts, dim=-1).to(part.device) if parts else part

    def tell(self, tensor: torch.Tensor) -> None:
        """Broadcast: overwrites the tensor with the leading rank's."""
        if self._nccl:
            distributed.broadcast(tensor, src=0)
            return
        here = tensor.cpu()
        distributed.broadcast(here, src=0)
        tensor.copy_(here)

    def least(self, number: int) -> int:
        """All-reduce: the minimum over all ranks."""
        return int(self._least(torch.tensor([number])))

    def common(self, candidates: Iterable[int]) -> tuple[int, ...]:
        """The candidates, numbers below 256, that all ranks have, in order."""
        has = torch.zeros(256, dtype=torch.int64)
        has[list(candidates)] = 1
        return tuple(self._least(has).nonzero().flatten().tolist())

    def _least(self, numbers: torch.Tensor) -> torch.Tensor:
        here = numbers.to(self._device) if self._nccl else numbers
        distributed.all_reduce(here, distributed.ReduceOp.MIN)
        return here.cpu()

    def _in_order(self, part: torch.Tensor) -> torch.Tensor:
        """All-reduce as reduce-scatter and all-gather: each rank adds up one piece in the order of ranks."""
        size, numel = self.share.size, part.numel()
        flat = torch.nn.functional.pad(part.reshape(-1), (0, -numel % size))
        pieces = torch.empty_like(flat)
        distributed.all_to_all_single(pieces, flat)
        first, *others = pieces.view(size, -1)
        total = first.clone()
        for other in others:
            total += other
        sums = list(torch.empty_like(flat).view(size, -1).unbind())
        distributed.all_gather(sums, total)
        return torch.cat(sums)[:numel].view(part.shape)


Group = Alone | TorchGroup
