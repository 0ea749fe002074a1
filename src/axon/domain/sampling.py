"""How the next token is chosen, and when a choice ends. Knows no tokenizer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """A job's sampling parameters; the seed stands in the job, because every job has one."""

    max_tokens: int
    """The most tokens a choice may get, replayed ones included."""
    temperature: float = 1.0
    """0 is greedy."""
    top_k: int = 0
    """0 keeps all."""
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    """Stop strings, seen by the worker's text side only."""
    stop_ids: tuple[int, ...] = ()
    """Token ids that end a choice as the model's own end token does."""
    ignore_eos: bool = False
