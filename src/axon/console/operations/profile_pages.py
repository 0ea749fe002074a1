"""Shows profiles in the terminal and writes them to files. Knows no server."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TypeVar

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from axon.console.tables import print_table
from axon.errors import InvalidInput
from axon.profiling.flame_graph import flame_graph
from axon.profiling.formats import chrome_trace, folded, speedscope
from axon.profiling.profile import CpuProfile, MemoryProfile, Profile, StepsProfile
from axon.profiling.summary import phase_sums
from axon.profiling.weights import Weight, heaviest

_TICK_S = 0.1
_SHOWN = 10
_CPU_SUFFIXES = {".svg": "a flame graph", ".json": "for speedscope.app", ".txt": "folded stacks"}

T = TypeVar("T")


def waited_for(record: Callable[[], T], seconds: float) -> T:
    """Calls ``record`` and returns its result; shows a bar of ``seconds`` meanwhile, where there is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        future, began = _started(record), monotonic()
        task = bar.add_task("Recording", total=seconds)
        while True:
            try:
                return future.result(_TICK_S)
            except TimeoutError:
                if future.done():
                    raise
                bar.update(task, completed=min(seconds, monotonic() - began))


def _started(record: Callable[[], T]) -> "Future[T]":
    """Calls it in a thread that ctrl-c does not wait for."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(record())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


def check_folder(out: Path) -> None:
    """Raises ``InvalidInput`` if the file's folder is missing, before anything is recorded for it."""
    if not out.parent.is_dir():
        raise InvalidInput(f"--out {out}: there is no folder {out.parent}.")


def cpu_suffix(out: Path) -> str:
    """The file's ending, which is its format; raises ``InvalidInput`` for another one."""
    if out.suffix not in _CPU_SUFFIXES:
        known = ", ".join(f"{suffix} ({what})" for suffix, what in _CPU_SUFFIXES.items())
        raise InvalidInput(f"--out {out}: the file's name must end in {known}.")
    return out.suffix


def write_cpu(profile: CpuProfile, out: Path, weight: Weight) -> None:
    """Writes the stacks in the format of the file's ending."""
    match cpu_suffix(out):
        case ".svg":
            out.write_text(flame_graph(profile, weight=weight))
        case ".json":
            out.write_bytes(speedscope(profile, weight=weight))
        case _:
            out.write_text(folded(profile, weight=weight))


def write_steps(profile: StepsProfile, out: Path) -> None:
    """Writes the steps as Chrome's trace events."""
    out.write_bytes(chrome_trace(profile))


def write_json(profile: Profile, out: Path) -> None:
    """Writes the profile as it is."""
    out.write_bytes(msgspec.json.format(msgspec.json.encode(profile)) + b"\n")


def show_cpu(profile: CpuProfile, out: Path, weight: Weight) -> None:
    """Prints the functions that took most."""
    share = 100 * profile.cpu_s / profile.seconds if profile.seconds else 0.0
    print(
        f"{profile.process}: {profile.cpu_s:.2f} s of processor time in {profile.seconds:.1f} s ({share:.0f}% of one "
        f"core), {profile.rounds} looks; the sampler took {profile.cost_s:.3f} s."
    )
    rows = [(f"{own:.3f}", f"{whole:.3f}", name) for name, own, whole in heaviest(profile, weight, _SHOWN)]
    if rows:
        print_table(("self s", "total s", "function"), rows)
    print(f"Written to {out}: {_CPU_SUFFIXES[out.suffix]}.")


def show_memory(profile: MemoryProfile, top: int) -> None:
    """Prints the lines that hold most."""
    print(
        f"{profile.process}: {_size(profile.held_bytes)} allocated in {profile.seconds:.1f} s and still held, "
        f"{_size(profile.peak_bytes)} at the peak; the whole process has {_size(profile.resident_bytes)}."
    )
    if profile.is_cut:
        print("It ended early: so many allocations were made that watching them took too much memory.")
    rows = [(_size(each.num_bytes), f"{each.blocks:,}", each.place) for each in profile.lines[:top]]
    print_table(("held", "blocks", "line"), rows)


def show_steps(profile: StepsProfile, out: Path) -> None:
    """Prints what the phases took together."""
    tokens = sum(each.tokens for each in profile.steps)
    print(f"{profile.process}: {len(profile.steps):,} steps of {tokens:,} tokens in {profile.seconds:.1f} s.")
    if profile.is_cut:
        print("It ended early: it had as many steps as it may hold.")
    rows = [
        (each.name, f"{each.count:,}", f"{each.total_ms:.1f}", f"{each.mean_ms:.3f}", f"{each.p99_ms:.3f}")
        for each in phase_sums(profile)
    ]
    if rows:
        print_table(("phase", "count", "total ms", "mean ms", "p99 ms"), rows)
    print(f"Written to {out}: open it in chrome://tracing or https://ui.perfetto.dev.")


def _size(num_bytes: int) -> str:
    size = float(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")
