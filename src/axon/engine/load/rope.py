"""Rotary position embedding: the frequencies of a model's config.json. Knows no tensors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from axon.errors import Misconfigured, UnknownModel

_KINDS = ("default", "linear", "llama3", "factors", "longrope", "yarn")
_OTHER_NAMES = {"su": "longrope"}
"""What older files call a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary position embedding: how positions rotate queries and keys."""

    theta: float = 10000.0
    kind: str = "default"
    """``default``, ``linear``, ``llama3`` or ``factors``."""
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_len: int = 8192
    factors: tuple[float, ...] = ()
    """Divisor of each frequency, where a file gives them one by one."""
    partial: float = 1.0
    """Part of each head that is rotated: its first dimensions."""
    scale: float = 1.0
    """Cosines and sines are multiplied by this."""

    def rotary_dim(self, head_dim: int) -> int:
        """Dimensions of a head that are rotated, from its first on."""
        return int(head_dim * self.partial)

    def frequencies(self, head_dim: int) -> list[float]:
        """Radians per position of each pair of rotated dimensions."""
        dim = self.rotary_dim(head_dim)
        plain = [self.theta ** (-2 * index / dim) for index in range(dim // 2)]
        if self.kind == "linear":
            return [frequency / self.factor for frequency in plain]
        if self.kind == "llama3":
            return [self._stretch(frequency) for frequency in plain]
        if self.kind == "factors":
            if len(self.factors) != len(plain):
                raise Misconfigured(f"the rope has {len(self.factors)} factors for {len(plain)} frequencies")
            return [frequency / factor for frequency, factor in zip(plain, self.factors, strict=True)]
        return plain

    def _stretch(self, frequency: float) -> float:
        """Llama 3.1: divides low frequencies by ``factor``, keeps high ones, interpolates between."""
        rotations = self.original_max_len * frequency / (2 * math.pi)
        blend = (rotations - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        blend = min(1.0, max(0.0, blend))
        return (1 - blend) * frequency / self.factor + blend * frequency


def read_rope(config: Mapping[str, Any], scaling: Mapping[str, Any], default_theta: float = 10000.0) -> Rope:
    """The rope that ``scaling`` (``rope_parameters`` or ``rope_scaling``) and the config around it describe; raises
    ``Misconfigured`` for a kind that is not supported."""
    kind = rope_kind(scaling)
    partial = scaling.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0
    theta = positive("rope_theta", scaling.get("rope_theta") or default_theta)
    plain = Rope(theta=theta, partial=positive("partial_rotary_factor", partial))
    if kind == "longrope":
        return _read_longrope(config, scaling, plain)
    if kind == "yarn":
        return _read_yarn(config, scaling, plain)
    _check_positive(scaling, "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    return Rope(
        theta=plain.theta,
        partial=plain.partial,
        kind=kind,
        factor=scaling.get("factor", 1.0),
        low_freq_factor=scaling.get("low_freq_factor", 1.0),
        high_freq_factor=scaling.get("high_freq_factor", 4.0),
        original_max_len=scaling.get("original_max_position_embeddings", 8192),
        factors=tuple(scaling.get("factors", ())),
    )


def _check_positive(scaling: Mapping[str, Any], *names: str) -> None:
    """Raises ``ValueError`` for what is there and is no number above 0."""
    for name in names:
        positive(f"{name} of the rope scaling", scaling.get(name, 1.0))


def positive(name: str, value: object) -> float:
    """The value; raises ``ValueError`` for what is no number above 0."""
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} is no number above 0")
    return value


def rope_kind(scaling: Mapping[str, Any]) -> str:
    """The kind of scaling by its newest name; raises ``Misconfigured`` for one that is not supported."""
    kind = str(scaling.get("rope_type") or scaling.get("type") or "default")
    kind = _OTHER_NAMES.get(kind, kind)
    if kind not in _KINDS:
        raise UnknownModel(
            f"rope scaling of type {kind!r} is not supported yet; the nearest that work are {', '.join(_KINDS)}"
        )
    return kind


def trained_len(config: Mapping[str, Any], scaling: Mapping[str, Any]) -> int:
    """Tokens that a LongRoPE model was first trained with: within them its short factors hold."""
    found = scaling.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    return int(found or config["max_position_embeddings"])


def _read_longrope(config: Mapping[str, Any], scaling: Mapping[str, Any], plain: Rope) -> Rope:
    """LongRoPE within the length that the model was first trained with: short factors, and one scale for all."""
    length = trained_len(config, scaling)
    stretched = scaling.get("factor") or config["max_position_embeddings"] / length
    scale = scaling.get("attention_factor")
    if scale is None:
        scale = math.sqrt(1 + math.log(stretched) / math.log(length)) if stretched > 1 else 1.0
    if not all(isinstance(factor, int | float) and factor > 0 for factor in scaling["short_factor"]):
        raise ValueError("short_factor is no list of numbers above 0")
    return Rope(
        theta=plain.theta,
        partial=plain.partial,
        kind="factors",
        factors=tuple(scaling["short_factor"]),
        original_max_len=length,
        scale=scale,
    )


def _read_yarn(config: Mapping[str, Any], scaling: Mapping[str, Any], plain: Rope) -> Rope:
    """YaRN: divides the frequencies that rotate less than ``beta_slow`` times within the length that the model was
    first trained with by ``factor``, keeps those that rotate more than ``beta_fast`` times, blends those between."""
    _check_positive(scaling, "factor")
    length, factor = trained_len(config, scaling), scaling["factor"]
    dim = plain.rotary_dim(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])

    def pair_that_rotates(times: float) -> float:
        return dim * math.log(length / (times * 2 * math.pi)) / (2 * math.log(plain.theta))

    low = pair_that_rotates(scaling.get("beta_fast") or 32)
    high = pair_that_rotates(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    width = high - low or 0.001
    blends = [min(1.0, max(0.0, (pair - low) / width)) for pair in range(dim // 2)]
    return Rope(
        theta=plain.theta,
        partial=plain.partial,
        kind="factors",
        factors=tuple(1 / (1 - blend + blend / factor) for blend in blends),
        original_max_len=length,
        scale=_yarn_scale(scaling, factor),
    )


def _yarn_scale(scaling: Mapping[str, Any], factor: float) -> float:
    """The factor on cosines and sines: as given, or by how far the context was stretched."""

    def stretch(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    given, over, under = (scaling.get(key) for key in ("attention_factor", "mscale", "mscale_all_dim"))
    if given is not None:
        return float(given)
    return stretch(over) / stretch(under) if over and under else stretch(1.0)
