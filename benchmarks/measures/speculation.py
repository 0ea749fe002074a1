"""How many draft tokens a server made and how many were right. Pure, but for one reading of its metrics."""

import re
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measures.figures import Figures
from benchmarks.measures.load import Answer

_SAMPLE = re.compile(r'^axon_draft_tokens_total\{[^}]*stage="(\w+)"[^}]*\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Drafts:
    """Counts since the server's start, or of one round."""

    drafted: float = 0.0
    accepted: float = 0.0

    def since(self, earlier: "Drafts") -> "Drafts":
        return Drafts(self.drafted - earlier.drafted, self.accepted - earlier.accepted)


def parse_drafts(metrics: str) -> Drafts:
    """The counts in the text of an Axon's ``/metrics``."""
    found = {"drafted": 0.0, "accepted": 0.0}
    for stage, value in _SAMPLE.findall(metrics):  # a line for each source
        found[stage] += float(value)
    return Drafts(**found)


def read_drafts(metrics_port: int) -> Drafts:
    """Axon's counts now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as response:
        return parse_drafts(response.read().decode())


def drafts_of(answers: Sequence[Answer]) -> Drafts:
    """The counts that a peer's streams reported."""
    return Drafts(sum(each.num_drafted for each in answers), sum(each.num_accepted for each in answers))


def acceptance(drafts: Drafts, num_tokens: int) -> Figures:
    """Share of the drafts that were right (0 where none was made), and drafts per token that was sent."""
    return {
        "drafts_per_token": drafts.drafted / max(1, num_tokens),
        "acceptance": drafts.accepted / drafts.drafted if drafts.drafted else 0.0,
    }
