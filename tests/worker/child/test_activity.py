"""What a worker tells of its activity: tenants that are busy, latencies by bucket, and never more than a bound."""

from dataclasses import dataclass

from axon.domain.histogram import BOUNDS, bucket_of
from axon.domain.presence import Activity, GpuUse, TenantActivity
from axon.worker.child.activity import MAX_TENANTS, ActivityCounts


@dataclass(frozen=True)
class Gpu:
    index: int = 0
    utilization: float = 0.5
    memory_bytes: int = 1 << 30


def alone(seconds: float, num: int) -> tuple[int, ...]:
    """The counts of so many durations of one length."""
    return (*(0 for _ in range(bucket_of(seconds))), num)


def test_a_new_worker_tells_nothing() -> None:
    assert ActivityCounts().told() == Activity()


def test_tokens_are_counted_by_tenant_with_what_runs_for_it() -> None:
    counts = ActivityCounts()
    counts.token("acme", prompt=10)
    counts.token("acme")
    counts.token("globex", prompt=7, answer=0)
    told = counts.told([("acme", 2), ("initech", 3), ("acme", 2)])
    assert told.running == 7
    assert told.tenants == (
        TenantActivity(tenant="acme", running=4, prompt_tokens=10, answer_tokens=2),
        TenantActivity(tenant="initech", running=3),
        TenantActivity(tenant="globex", prompt_tokens=7),
    )


def test_of_many_tenants_the_busiest_are_told_then_those_served_last_and_few_are_remembered() -> None:
    counts = ActivityCounts()
    for number in range(1000):
        counts.token(f"t{number}")
    told = counts.told([("t3", 1)])
    assert [each.tenant for each in told.tenants] == ["t3", *(f"t{999 - number}" for number in range(MAX_TENANTS - 1))]
    assert told.tenants[0].answer_tokens == 0  # it was forgotten meanwhile, and counts anew
    assert len(counts._tokens) == 256


def test_a_gap_is_between_two_steps_with_tokens_once_for_each_stream_that_goes_on() -> None:
    counts = ActivityCounts()
    counts.began(0.3)
    counts.step(10.0, num_tokens=1, has_work=True)
    counts.step(10.02, num_tokens=0, has_work=True)  # a prompt alone
    counts.began(0.3)
    counts.step(10.05, num_tokens=3, has_work=True)
    told = counts.told()
    assert told.ttft_counts == alone(0.3, 2)
    assert told.gap_counts == alone(0.05, 2)


def test_a_stall_is_a_gap_and_a_pause_without_work_is_none() -> None:
    counts = ActivityCounts()
    counts.step(10.0, num_tokens=1, has_work=True)
    counts.step(14.0, num_tokens=1, has_work=False)
    counts.step(99.0, num_tokens=1, has_work=True)
    assert counts.told().gap_counts == alone(4.0, 1)


def test_a_latency_beyond_every_bucket_is_counted_in_the_last() -> None:
    counts = ActivityCounts()
    counts.began(1e9)
    counts.began(-1.0)  # clocks of two machines differ
    told = counts.told().ttft_counts
    assert (len(told), told[-1], told[0]) == (len(BOUNDS) + 1, 1, 1)


def test_gpus_are_told_as_they_were_last_read_and_no_more_than_sixteen() -> None:
    counts = ActivityCounts()
    counts.saw_gpus([Gpu(index=number) for number in range(20)])
    gpus = counts.told().gpus
    assert (len(gpus), gpus[3]) == (16, GpuUse(index=3, utilization=0.5, memory_bytes=1 << 30))
    counts.saw_gpus([])
    assert counts.told().gpus == ()
