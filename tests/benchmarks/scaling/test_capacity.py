"""The table of docs/scale.md: more streams need more of everything, by the measured figures."""

from benchmarks.scaling.capacity import Carries, Traffic, needs


def test_a_million_streams_of_a_token_every_50_ms_begin_80_000_turns_a_second() -> None:
    assert Traffic().tokens_per_s == 20e6
    assert Traffic().turns_per_s == 80_000


def test_twice_the_streams_need_twice_of_everything_and_a_faster_part_half_as_many() -> None:
    once, twice = needs(Traffic(streams=1e6)), needs(Traffic(streams=2e6))
    assert all(abs(twice[part] - 2 * once[part]) <= 2 for part in once)
    faster = needs(Traffic(), Carries(postgresql_turns_per_s=2 * 1574))
    assert faster["PostgreSQL primaries"] == 26
