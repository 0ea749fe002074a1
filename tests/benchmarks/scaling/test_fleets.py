"""The simulator of fleets: equal runs for equal seeds, work that is conserved, and an oracle that is never late."""

from dataclasses import replace

import pytest
from benchmarks.scaling.__main__ import main
from benchmarks.scaling.comparison import compare, is_beaten
from benchmarks.scaling.fleet import Fleet
from benchmarks.scaling.load import Cohort, Load
from benchmarks.scaling.policies import POLICIES, Ours, Schedule
from benchmarks.scaling.scenarios import SMOKE
from benchmarks.scaling.simulation import simulate
from benchmarks.scaling.tally import Tally

from benchmarks.scaling import oracle

(LOAD,) = SMOKE
ENGINE = LOAD.engine


def fleet(replicas: int) -> tuple[Fleet, Tally]:
    tally = Tally(ENGINE, target_s=2.0, counted_from=0.0)
    return Fleet(ENGINE, replicas, tally), tally


def test_two_runs_with_one_seed_are_equal_and_another_seed_differs() -> None:
    one, other = compare(LOAD, ("ours",)), compare(LOAD, ("ours",))
    assert one.results == other.results
    assert simulate(replace(LOAD, seed=8), Ours(LOAD)) != one.results["ours"]


def test_a_request_alone_takes_what_the_cost_model_says() -> None:
    alone, tally = fleet(1)
    alone.run(60.0, [Cohort(1.0, 1024.0, 100.0, 1, "a")], 0)
    steps = 2 * (ENGINE.fixed_s + 512 * ENGINE.prompt_s)
    assert tally.percentile(0.5) == pytest.approx(steps, rel=0.06)
    assert alone.num_running == alone.num_waiting == 0


def test_a_busy_replica_serves_what_the_cost_model_says() -> None:
    """2,000 requests at once: the time until all have ended is their work at full batches, but for the last batch."""
    busy, _ = fleet(4)
    arrivals = [Cohort(0.001 * index, 1000.0, 250.0, 1, str(index % 3)) for index in range(2000)]
    index, now = 0, 0.0
    while busy.num_running or not now:
        now += 0.5
        index = busy.run(now, arrivals, index)
    assert now == pytest.approx(2000 * ENGINE.seconds(1000.0, 250.0) / 4, rel=0.06)


def test_replicas_that_leave_hand_their_sequences_over_and_none_is_lost() -> None:
    shrinking, tally = fleet(4)
    arrivals = [Cohort(0.0, 500.0, 2000.0, 3, "a") for _ in range(60)]
    shrinking.run(2.0, arrivals, 0)
    before = shrinking.num_running
    shrinking.resize(1)
    assert shrinking.num_running == before
    shrinking.run(600.0, arrivals, 60)
    assert tally.num == 180
    assert shrinking.num_running == shrinking.num_waiting == 0


def test_a_fleet_is_idle_from_the_end_of_its_last_job_and_not_while_one_waits_for_a_cold_start() -> None:
    cold, _ = fleet(0)
    cold.run(30.0, [Cohort(1.0, 100.0, 100.0, 1, "a")], 0)
    assert (cold.num_waiting, cold.idle_s) == (1, 0.0)
    cold.resize(1)
    cold.run(31.5, [], 0)
    assert (cold.num_running, cold.num_waiting) == (0, 0)
    assert 0.5 < cold.idle_s < 1.5


def test_the_oracle_is_in_time_for_all_and_has_fewer_hours_than_twice_the_work() -> None:
    load = Load(name="small", seconds=600.0, erlangs=lambda _: 4.0, initial=5, warm_up_s=120.0, cohorts=4)
    arrivals = load.arrivals()
    result = simulate(load, Schedule(oracle.least_schedule(load, arrivals)), arrivals)
    assert result.within == 1.0
    work_h = oracle.fluid_hours(load, arrivals)
    assert work_h <= result.replica_hours <= 1.6 * work_h


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_keeps_within_its_bounds(policy: str) -> None:
    load = replace(LOAD, least=2, most=5)
    result = simulate(load, POLICIES[policy](load))
    assert all(2 <= replicas <= 5 for _, replicas in result.points)


def test_ten_thousand_replicas_cost_no_more_time_than_ten() -> None:
    load = replace(LOAD, erlangs=lambda _: 8000.0, initial=9000, most=10_000, pace_per_s=200.0)
    arrivals = load.arrivals()
    assert len(arrivals) <= 4 * 480
    assert simulate(load, Ours(load), arrivals).within > 0.9


def test_a_policy_is_beaten_only_by_one_that_is_behind_in_neither_figure() -> None:
    def row(within: float, hours: float) -> dict[str, float]:
        return {"within": within, "hours_ratio": hours}

    figures = {"oracle": row(1, 1), "ours": row(0.99, 1.1), "a": row(1.0, 1.2), "b": row(0.9, 1.0)}
    assert is_beaten(figures) == []
    assert is_beaten({**figures, "c": row(0.99, 1.05)}) == ["c"]


def test_the_benchmark_prints_its_command_a_table_and_a_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--smoke"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "python -m benchmarks.scaling --smoke"
    assert any(line.startswith("| ours |") for line in lines)
    assert lines[-1].startswith("{")
