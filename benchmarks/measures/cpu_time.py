"""CPU time of the processes of a server, part by part, from /proc. Knows no load."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measures.figures import Figures

ENGINE = "engine"
"""The part under which the processes of an engine are counted, whoever has started them."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment."""

    parent: int
    cpu_s: float
    """Its own CPU time, and that of its children that have ended."""
    is_engine: bool = False


def read_processes() -> dict[int, Process]:
    """All processes of this machine by their id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            is_engine = b"axon.engine" in (path / "cmdline").read_bytes()
            spent = sum(map(int, fields[11:15]))
            found[int(path.name)] = Process(int(fields[1]), spent / _TICKS, is_engine)
    return found


def cpu_by_part(processes: Mapping[int, Process], roots: Mapping[str, int]) -> Figures:
    """CPU seconds of each root and of all that descend from it; an engine's are counted apart."""
    part_of = {pid: part for part, pid in roots.items()}
    spent = dict.fromkeys((*roots, ENGINE), 0.0)
    for pid, process in processes.items():
        part, above, is_engine = part_of.get(pid), process.parent, process.is_engine
        while part is None and above in processes:
            part, is_engine = part_of.get(above), is_engine or processes[above].is_engine
            above = processes[above].parent
        if part is not None:
            spent[ENGINE if is_engine else part] += process.cpu_s
    return spent


def costs(*, short_s: Figures, num_short: int, long_s: Figures, num_long: int, more_tokens: int) -> dict[str, Figures]:
    """CPU of a request and of a token for each part, from two loads: ``num_short`` requests of one token, and
    ``num_long`` of ``more_tokens`` more."""
    found = {}
    for part in short_s:
        request_s = short_s[part] / num_short
        token_s = (long_s[part] / num_long - request_s) / more_tokens
        found[part] = {"request_ms": 1000 * (request_s - token_s), "token_us": 1e6 * token_s}
    return found


def total(by_part: Mapping[str, Figures]) -> Figures:
    """Of all parts but the engine: what a server adds to it."""
    parts = [figures for part, figures in by_part.items() if part != ENGINE]
    return {name: sum(figures[name] for figures in parts) for name in parts[0]}
