"""How close one arithmetic comes to another on a fixed text: same likeliest token, perplexity, KL divergence."""

import argparse
import hashlib
import heapq
import inspect
import math
import statistics
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data.topics import topics

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
WINDOW_TOKENS = 1024

Logits = Callable[[list[int]], torch.Tensor]


def texts() -> dict[str, tuple[str, int]]:
    """Each part of the text, and how many windows are taken from its beginning."""
    code = "\n\n".join(inspect.getsource(module) for module in (argparse, heapq, statistics, textwrap))
    return {
        "licence": ((ROOT / "LICENSE").read_text(encoding="utf-8"), 2),
        "prose": ("\n\n".join(topics[name] for name in sorted(topics)), 8),
        "code": (code, 10),
    }


def windows(model_dir: Path) -> list[list[int]]:
    """In an order that mixes the parts, so that the first few stand for all."""
    from axon.text.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(model_dir)
    cut = []
    for text, count in texts().values():
        ids = tokenizer.encode(text)
        cut += [
            ((index + 0.5) / count, ids[index * WINDOW_TOKENS : (index + 1) * WINDOW_TOKENS]) for index in range(count)
        ]
    return [window for _, window in sorted(cut)]


def digest_of(token_windows: list[list[int]]) -> str:
    """Figures of one digest can be compared."""
    return hashlib.sha256(repr(token_windows).encode()).hexdigest()[:12]


class Tally:
    """What has been seen of one arithmetic so far."""

    def __init__(self) -> None:
        self.positions = self.targets = self.agreeing = 0
        self.divergence = self.loss = 0.0

    def add(self, reference: torch.Tensor, other: torch.Tensor, token_ids: list[int]) -> None:
        """Log-probabilities [position, token] of the reference and of this one."""
        self.positions += len(other)
        self.agreeing += int((reference.argmax(-1) == other.argmax(-1)).sum())
        self.divergence += float((reference.exp() * (reference - other)).sum())
        self.targets += len(other) - 1
        self.loss -= float(other[:-1].gather(1, torch.tensor(token_ids[1:], device=other.device)[:, None]).sum())

    def figures(self, reference: "Tally") -> dict[str, float]:
        top1 = self.agreeing / self.positions
        worse = math.exp(self.loss / self.targets - reference.loss / reference.targets) - 1
        return {
            "top1": round(top1, 4),
            "top1_standard_error": round(math.sqrt(top1 * (1 - top1) / self.positions), 4),
            "mean_kl": round(self.divergence / self.positions, 5),
            "perplexity": round(math.exp(self.loss / self.targets), 4),
            "perplexity_percent": round(100 * worse, 2),
        }


def compare(arithmetics: dict[str, Logits], token_windows: list[list[int]]) -> Iterator[dict[str, dict[str, float]]]:
    """The figures after each window; the first arithmetic is the reference."""
    tallies = {name: Tally() for name in arithmetics}
    reference_name = next(iter(arithmetics))
    for token_ids in token_windows:
        reference = None
        for name, logits in arithmetics.items():
            found = torch.log_softmax(logits(token_ids), -1)
            reference = found if reference is None else reference
            tallies[name].add(reference, found, token_ids)
        yield {name: tally.figures(tallies[reference_name]) for name, tally in tallies.items()}
