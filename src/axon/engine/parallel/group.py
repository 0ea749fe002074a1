"""What the ranks of a group say to each other while they compute a step: sums and gathers. Knows no model.

On a CPU (Gloo) a sum is the parts of all ranks in the order of their ranks, whatever its place in the batch: a row
stays its own. On GPUs (NCCL) the library chooses the order.
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
"""A sum that takes longer has lost somebody; who dies is noticed sooner, see ``axon.engine.ranks.link``."""


Store = Any
"""A key-value store of torch.distributed's."""


def make_store(host: str) -> Store:
    """The leading rank's, at a free port of this address alone."""
    listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    return _store(host, listener.getsockname()[1], True, master_listen_fd=listener.detach())


def find_store(host: str, port: int) -> Store:
    """The leading rank's, as another one sees it."""
    return _store(host, port, False)


def _store(host: str, port: int, leads: bool, **more: Any) -> Store:
    timeout = timedelta(seconds=COLLECTIVE_S)
    return distributed.TCPStore(  # type: ignore[attr-defined]
        host, port, None, leads, timeout, wait_for_workers=False, **more
    )


@dataclass(slots=True)
class Traffic:
    """What a rank has sent, by the formulas of ``axon.engine.parallel.traffic``."""

    num_sums: int = 0
    num_gathers: int = 0
    sent_bytes: int = 0


class Alone:
    """The group of one: there is nobody to speak to."""

    share = Share()
    is_cut = False
    """Whether the model's parts are to be put together at all."""
    records = True
    """Whether its calls can stand in a CUDA graph."""

    def __init__(self) -> None:
        self.traffic = Traffic()

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def add_up(self, part: torch.Tensor) -> torch.Tensor:
        """The sum over all ranks, on every rank."""
        return part

    def gather(self, part: torch.Tensor) -> torch.Tensor:
        """The columns of all ranks side by side; only what the leading rank gets is whole."""
        return part

    def tell(self, tensor: torch.Tensor) -> None:
        """Overwrites the tensor with the leading rank's."""

    def least(self, number: int) -> int:
        """The smallest number of all ranks."""
        return number

    def common(self, candidates: Iterable[int]) -> tuple[int, ...]:
        """What every rank has, in order."""
        return tuple(candidates)


class TorchGroup:
    """Ranks over torch.distributed. ``meet`` waits until all have loaded; its store is where they find each other."""

    def __init__(self, share: Share, device: torch.device, meet: Callable[[], Store], *, nccl: bool) -> None:
        self.share = share
        self.is_cut = True
        self.traffic = Traffic()
        self.records = nccl
        self._device = device
        self._meet = meet
        self._nccl = nccl

    def connect(self) -> None:
        """Meets the others, once the model is loaded."""
        distributed.init_process_group(
            "nccl" if self._nccl else "gloo",
            store=self._meet(),
            rank=self.share.rank,
            world_size=self.share.size,
            timeout=timedelta(seconds=COLLECTIVE_S),
            device_id=self._device if self._nccl else None,
        )

    def close(self) -> None:
        """Leaves the others."""
        if distributed.is_initialized():
            distributed.destroy_process_group()

    def add_up(self, part: torch.Tensor) -> torch.Tensor:
        """The sum over all ranks, on every rank."""
        self.traffic.num_sums += 1
        self.traffic.sent_bytes += summed_bytes(part.numel(), part.element_size(), self.share.size)
        if self._nccl:
            distributed.all_reduce(part)
            return part
        return self._in_order(part.cpu()).to(part.device)

    def gather(self, part: torch.Tensor) -> torch.Tensor:
        """The columns of all ranks side by side; only what the leading rank gets is whole."""
        self.traffic.num_gathers += 1
        self.traffic.sent_bytes += gathered_bytes(part.numel(), part.element_size(), self.share.rank)
        here = part.contiguous() if self._nccl else part.cpu().contiguous()
        parts = [torch.empty_like(here) for _ in range(self.share.size)] if self.share.leads else None
        distributed.gather(here, parts, dst=0)
        return torch.cat(parts, dim=-1).to(part.device) if parts else part

    def tell(self, tensor: torch.Tensor) -> None:
        """Overwrites the tensor with the leading rank's."""
        if self._nccl:
            distributed.broadcast(tensor, src=0)
            return
        here = tensor.cpu()
        distributed.broadcast(here, src=0)
        tensor.copy_(here)

    def least(self, number: int) -> int:
        """The smallest number of all ranks."""
        return int(self._least(torch.tensor([number])))

    def common(self, candidates: Iterable[int]) -> tuple[int, ...]:
        """What every rank has of these numbers below 256, in order."""
        has = torch.zeros(256, dtype=torch.int64)
        has[list(candidates)] = 1
        return tuple(self._least(has).nonzero().flatten().tolist())

    def _least(self, numbers: torch.Tensor) -> torch.Tensor:
        here = numbers.to(self._device) if self._nccl else numbers
        distributed.all_reduce(here, distributed.ReduceOp.MIN)
        return here.cpu()

    def _in_order(self, part: torch.Tensor) -> torch.Tensor:
        """Each rank sums a piece of everybody's numbers; then each is told all the sums."""
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
