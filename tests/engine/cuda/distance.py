"""How far two tensors are apart."""

import torch


def distance(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    assert bool(torch.isfinite(ours.float()).all()), "a number was not written, or is none"
    return float((ours.double() - theirs.double()).norm() / theirs.double().norm())
