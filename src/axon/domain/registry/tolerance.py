"""How much worse than the old version a new one may be before its rollout is aborted. Knows no sample."""

from dataclasses import dataclass

from axon.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Bounds of the comparison of two versions."""

    min_samples: int = 200
    """Turns that each version must have begun since the rollout did before it can be aborted by the comparison."""
    slower: float = 1.25
    """Factor by which TTFT and time between tokens may be longer; rounded up to a whole bucket of the histograms."""
    odds: float = 1.5
    """Factor by which the odds of an error, a refusal and a mute turn may be larger."""
    excess: float = 0.01
    """Smallest difference of the rates of errors, refusals or mute turns that aborts: 0.01 is one turn in a hundred."""
    mute_s: float = 30.0
    """Seconds after which an accepted turn without a first token counts as mute."""
    false_aborts: float = 0.005
    """Largest probability that an equally good version is ever aborted, however often the comparison looks."""

    def check(self) -> None:
        """Raises ``InvalidInput`` for bounds that cannot hold."""
        for name, low, high in _RANGES:
            if not low <= getattr(self, name) <= high:
                raise InvalidInput(f"'{name}' must be between {low:g} and {high:g}.", param=f"tolerance.{name}")


_RANGES = (
    ("min_samples", 1, 1_000_000),
    ("slower", 1.0, 100.0),
    ("odds", 1.0, 100.0),
    ("excess", 0.0, 1.0),
    ("mute_s", 1.0, 3600.0),
    ("false_aborts", 1e-9, 0.5),
)
