"""Decides which part of a model each rank of a group holds. Pure functions; no tensors, no files.

Query heads, the inner dimension of the MLP or of every expert, and the vocabulary are cut into as many parts as there
are ranks. So are the KV heads; if there are fewer of them than ranks, several ranks hold the same one.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from axon.engine.load.architecture import Architecture
from axon.errors import Misconfigured


class Cut(NamedTuple):
    """A slice of a tensor: ``start`` to ``stop`` along ``dim``, padded with zeros to ``size``."""

    dim: int
    start: int
    stop: int
    size: int


@dataclass(frozen=True, slots=True)
class Share:
    """One rank of a group of ``size`` ranks."""

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the leading rank, which schedules, samples and talks to the worker."""
        return self.rank == 0

    def part(self, total: int) -> range:
        """This rank's range of ``total`` items, a multiple of the group's size."""
        each = total // self.size
        return range(self.rank * each, (self.rank + 1) * each)

    def kv_heads(self, num_kv_heads: int) -> range:
        """The KV heads that this rank's query heads attend to."""
        if num_kv_heads >= self.size:
            return self.part(num_kv_heads)
        index = self.rank * num_kv_heads // self.size
        return range(index, index + 1)

    def vocabulary(self, vocab_size: int) -> range:
        """This rank's range of token ids; equal for all ranks but the last ones."""
        each = padded_part(vocab_size, self.size)
        return range(min(self.rank * each, vocab_size), min((self.rank + 1) * each, vocab_size))

    def of(self, architecture: Architecture) -> Architecture:
        """The model as this rank computes it: fewer heads, a narrower MLP; the vocabulary stays as it is."""
        experts = architecture.experts
        return replace(
            architecture,
            num_heads=architecture.num_heads // self.size,
            num_kv_heads=len(self.kv_heads(architecture.num_kv_heads)),
            intermediate_size=architecture.intermediate_size // self.size,
            experts=experts and replace(experts, inner_size=experts.inner_size // self.size),
        )

    def cut(self, name: str, architecture: Architecture) -> Cut | None:
        """The slice of a tensor that this rank holds; None for a tensor that every rank holds whole."""
        if is_added_once(name):
            return None
        dim = architecture.head_dim
        heads = _numbers(self.part(architecture.num_heads), dim)
        kv_heads = _numbers(self.kv_heads(architecture.num_kv_heads), dim)
        experts = architecture.experts if ".experts." in name else None
        inner = self.part(experts.inner_size if experts else architecture.intermediate_size)
        vocabulary = self.vocabulary(architecture.vocab_size)
        cuts = {
            "q_proj": _along(0, heads),
            "k_proj": _along(0, kv_heads),
            "v_proj": _along(0, kv_heads),
            "o_proj": _along(1, heads),
            "gate_proj": _along(0, inner),
            "up_proj": _along(0, inner),
            "down_proj": _along(1, inner),
            "embed_tokens": _along(0, vocabulary, padded_part(architecture.vocab_size, self.size)),
            "lm_head": _along(0, vocabulary, padded_part(architecture.vocab_size, self.size)),
        }
        if name.endswith(".sinks"):
            return _along(0, self.part(architecture.num_heads))
        return cuts.get(name.split(".")[-2])


def is_added_once(name: str) -> bool:
    """Whether this is the bias of a product whose inputs are cut: ranks add up its parts, and one of them the bias."""
    return name.endswith((".o_proj.bias", ".down_proj.bias"))


def padded_part(total: int, size: int) -> int:
    """The largest part if ``total`` items are cut into ``size`` parts, equal but for the last ones."""
    return -(-total // size)


def working_sizes(architecture: Architecture) -> list[int]:
    """The numbers of ranks that the model can be cut over."""
    return [size for size in range(1, architecture.num_heads + 1) if _works(architecture, size)]


def refuse_impossible(architecture: Architecture, size: int) -> None:
    """Raises ``Misconfigured``, with the sizes that work, where the model cannot be cut into ``size`` parts."""
    if size < 1:
        raise Misconfigured("engine.tensor_parallel must be at least 1")
    if not _works(architecture, size):
        sizes = ", ".join(map(str, working_sizes(architecture)))
        raise Misconfigured(
            f"engine.tensor_parallel = {size} does not divide this model ({architecture.num_heads} heads, "
            f"{architecture.num_kv_heads} KV heads, intermediate size {_inner_words(architecture)}); "
            f"these sizes work: {sizes}"
        )


def _works(architecture: Architecture, size: int) -> bool:
    heads, kv_heads = architecture.num_heads, architecture.num_kv_heads
    kv_works = kv_heads % size == 0 if kv_heads >= size else size % kv_heads == 0
    return heads % size == 0 and kv_works and all(inner % size == 0 for inner in _inner_sizes(architecture))


def _inner_sizes(architecture: Architecture) -> list[int]:
    """The inner sizes of the model's MLPs and experts."""
    layers = {architecture.experts_of(layer) for layer in range(architecture.num_layers)}
    return sorted({experts.inner_size if experts else architecture.intermediate_size for experts in layers})


def _inner_words(architecture: Architecture) -> str:
    return " and ".join(map(str, _inner_sizes(architecture)))


def _numbers(heads: range, dim: int) -> range:
    return range(heads.start * dim, heads.stop * dim)


def _along(dim: int, part: range, size: int = 0) -> Cut:
    return Cut(dim, part.start, part.stop, size or len(part))
