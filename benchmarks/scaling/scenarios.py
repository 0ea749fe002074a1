"""The loads that the policies are compared on. Values only."""

from dataclasses import replace
from math import pi, sin

from benchmarks.scaling.load import Lengths, Load

_HOUR_S = 3600.0
_CROWD_S = 1500.0


def _steady(_: float) -> float:
    return 20.0


def _wave(at: float) -> float:
    """Between 4 and 20 busy replicas and back, in 6 hours: four times as steep as a day."""
    return 12.0 - 8.0 * sin(2 * pi * at / (6 * _HOUR_S))


def _crowd(at: float) -> float:
    """Ten times as many within a minute, for an hour; they leave over five minutes."""
    return 8.0 * (1 + 9 * max(0.0, min(1.0, (at - _CROWD_S) / 60, (_CROWD_S + _HOUR_S - at) / 300 + 1)))


def _short_crowd(at: float) -> float:
    return _crowd(at) if at < _CROWD_S + 600 else _crowd(at + 1800)


def _heavy(_: float) -> float:
    return 16.0


def _agents(at: float) -> float:
    return 8.0 if at < 0.75 * _HOUR_S else 16.0


def _large(at: float) -> float:
    """From 4,500 busy replicas to 9,000 and back, in 40 minutes."""
    return 6750.0 - 2250.0 * sin(2 * pi * at / 2400.0 + pi / 2)


_RARE_TURNS = 19
_RARE_EVERY_S = 2 * _HOUR_S


def _rare(_: float) -> float:
    """One session of twenty turns every two hours."""
    return RARE_LENGTHS_S * (1 + _RARE_TURNS) / _RARE_EVERY_S


CROWD = Load(name="crowd", seconds=2 * _HOUR_S, erlangs=_crowd, initial=11, cohorts=16)
RARE_LENGTHS_S = Load(name="", seconds=0.0, erlangs=_heavy).mean_seconds()

RARE = Load(
    name="rare",
    seconds=6 * _HOUR_S,
    erlangs=_rare,
    loop_turns=_RARE_TURNS,
    pause_s=25.0,
    slice_s=30.0,
    initial=0,
    least=0,
    most=4,
    idle_s=300.0,
    warm_up_s=0.0,
    copies=40,
)

LOADS = (
    Load(name="steady", seconds=2 * _HOUR_S, erlangs=_steady, initial=25, cohorts=12),
    Load(name="wave", seconds=6 * _HOUR_S, erlangs=_wave, initial=16, cohorts=6),
    CROWD,
    Load(
        name="heavy",
        seconds=1.5 * _HOUR_S,
        erlangs=_heavy,
        lengths=Lengths(prompt_mean=1500.0, prompt_sigma=1.3, answer_mean=300.0, answer_tail=1.6),
        initial=20,
        cohorts=16,
    ),
    Load(
        name="agents",
        seconds=1.5 * _HOUR_S,
        erlangs=_agents,
        lengths=Lengths(prompt_mean=800.0, answer_mean=200.0),
        loop_turns=19,
        initial=11,
        cohorts=1,
    ),
    RARE,
)
"""The six loads of the comparison."""

MORE = (
    replace(CROWD, name="crowd, cold start 4 s", cold_start_s=4.0),
    replace(CROWD, name="crowd, cold start 90 s", cold_start_s=90.0),
    replace(CROWD, name="crowd for half an hour", seconds=1.5 * _HOUR_S, erlangs=_short_crowd),
    replace(RARE, name="rare, idle time 60 s", idle_s=60.0),
    Load(
        name="10,000 workers",
        seconds=0.75 * _HOUR_S,
        erlangs=_large,
        initial=5200,
        most=10_000,
        cohorts=40,
        pace_per_s=200.0,
    ),
)
"""The crowd and rare use under other conditions, and a fleet of up to 10,000 workers."""

SMOKE = (
    Load(
        name="smoke", seconds=240.0, erlangs=lambda at: 3.0 if at < 120 else 6.0, initial=4, warm_up_s=30.0, cohorts=4
    ),
)
"""Seconds of work, for tests."""
