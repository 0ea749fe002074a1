"""What a worker serves is learned while it is busy, and from what it serves."""

from axon.worker.child.throughput import Throughput


def busy(service: Throughput, *, since: float, seconds: int, tokens: int) -> float:
    """So many tokens in each of these seconds; returns when it is over."""
    service.look(since, is_busy=True)
    for second in range(1, seconds + 1):
        service.served(tokens)
        service.look(since + second, is_busy=True)
    return since + seconds


def test_it_follows_what_is_served_while_every_slot_is_taken() -> None:
    service = Throughput()
    now = busy(service, since=0.0, seconds=1, tokens=200)
    assert service.tokens_per_s == 200
    busy(service, since=now, seconds=30, tokens=100)
    assert 100 <= service.tokens_per_s < 101


def test_an_engine_that_hangs_says_nothing_of_what_it_serves() -> None:
    service = Throughput()
    now = busy(service, since=0.0, seconds=5, tokens=200)
    now = busy(service, since=now, seconds=60, tokens=0)
    assert service.tokens_per_s == 200


def test_a_worker_with_room_learns_nothing() -> None:
    service = Throughput()
    service.served(10)
    service.look(1.0, is_busy=False)
    service.look(5.0, is_busy=False)
    assert service.tokens_per_s == 0.0
