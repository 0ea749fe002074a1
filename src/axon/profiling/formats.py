"""Writes profiles for other programs: folded stacks, speedscope, Chrome's trace events. No I/O.

Folded stacks are read by Brendan Gregg's flamegraph.pl and by inferno; speedscope's file by https://speedscope.app;
trace events by chrome://tracing and https://ui.perfetto.dev.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from axon.profiling.profile import CpuProfile, Phase, Step, StepsProfile
from axon.profiling.weights import Weight, weight_of

_STEPS, _PHASES, _DEVICE = 1, 2, 3
_TRACKS = {_STEPS: "steps", _PHASES: "host", _DEVICE: "device"}


def folded(profile: CpuProfile, *, weight: Weight = Weight.CPU) -> str:
    """One line for each stack: its frames from the thread on, and microseconds or samples."""
    lines = (
        f"{';'.join(profile.frames[index].replace(';', ',') for index in stack.frames)} {value}"
        for stack in profile.stacks
        if (value := weight_of(stack, weight)) > 0
    )
    return "".join(f"{line}\n" for line in sorted(lines))


def speedscope(profile: CpuProfile, *, weight: Weight = Weight.CPU) -> bytes:
    """The profile in speedscope's format, one profile for each thread."""
    threads: dict[str, list[tuple[list[int], int]]] = {}
    for stack in profile.stacks:
        if (value := weight_of(stack, weight)) > 0:
            threads.setdefault(profile.frames[stack.frames[0]], []).append((list(stack.frames), value))
    unit = "microseconds" if weight is Weight.CPU else "none"
    return msgspec.json.encode(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": "axon",
            "name": profile.process,
            "shared": {"frames": [{"name": name} for name in profile.frames]},
            "profiles": [_speedscope_thread(name, stacks, unit) for name, stacks in sorted(threads.items())],
        }
    )


def _speedscope_thread(name: str, stacks: list[tuple[list[int], int]], unit: str) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(value for _, value in stacks),
        "samples": [frames for frames, _ in stacks],
        "weights": [value for _, value in stacks],
    }


def chrome_trace(profile: StepsProfile) -> bytes:
    """The steps as Chrome's trace events, with a track for steps, one for the host's phases, one for the device."""
    events = [_metadata(profile.pid, 0, "process_name", profile.process or "engine")]
    events += [_metadata(profile.pid, track, "thread_name", name) for track, name in _TRACKS.items()]
    for step in profile.steps:
        events += _events(profile.pid, step)
    about = {"process": profile.process, "seconds": round(profile.seconds, 3), "cut": profile.is_cut}
    return msgspec.json.encode({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about})


def _metadata(pid: int, tid: int, name: str, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": {"name": value}}


def _events(pid: int, step: Step) -> Iterator[dict[str, Any]]:
    args = {"sequences": step.sequences, "tokens": step.tokens}
    yield _complete(pid, _STEPS, Phase("step", step.start_us, step.us)) | {"args": args}
    for track, phases in ((_PHASES, step.phases), (_DEVICE, step.device)):
        for phase in phases:
            yield _complete(pid, track, phase)
    yield {"name": "batch", "ph": "C", "pid": pid, "tid": _STEPS, "ts": step.start_us, "args": args}


def _complete(pid: int, track: int, phase: Phase) -> dict[str, Any]:
    return {"name": phase.name, "ph": "X", "cat": _TRACKS[track], "pid": pid, "tid": track, "ts": phase.start_us} | {
        "dur": phase.us
    }
