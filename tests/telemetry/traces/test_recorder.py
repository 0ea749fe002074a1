"""The recorder: exports in a thread, drops what does not fit, and a collector that is away costs spans alone."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from structlog.testing import capture_logs

from axon.domain.tracing.span import Span
from axon.telemetry.config import TracesConfig
from axon.telemetry.traces.recorder import Export, Recorder
from tests.journeys.server import wait_until

SPAN = Span("claim", "a" * 32, "b" * 16, "", 1.0, 2.0)


def recorder(export: Export, counts: "Counter[str]", **config: object) -> Recorder:
    def count(result: str, number: int) -> None:
        counts[result] += number

    return Recorder(TracesConfig(endpoint="x", gather_s=0.0, **config), export, count)  # type: ignore[arg-type]


def test_what_was_added_is_exported_before_the_end() -> None:
    got: list[Span] = []

    def export(spans: Sequence[Span]) -> bool:
        got.extend(spans)
        return True

    counts: Counter[str] = Counter()
    made = recorder(export, counts)
    for _ in range(700):
        made.add([SPAN, SPAN])
    made.close()
    assert len(got) == counts["exported"] == 1400


def test_a_full_queue_drops_and_counts() -> None:
    counts: Counter[str] = Counter()
    held = threading.Event()

    def export(spans: Sequence[Span]) -> bool:
        held.wait(60)
        return True

    made = recorder(export, counts, queue=3)
    made.add([SPAN])
    wait_until(lambda: not made._waiting, "the first one is under way")
    made.add([SPAN] * 5)
    assert counts == {"lost": 2}
    held.set()
    made.close()
    assert counts == {"lost": 2, "exported": 4}


def test_a_collector_that_refuses_or_breaks_loses_spans_and_nothing_else() -> None:
    counts: Counter[str] = Counter()
    answers: Iterator[bool | ValueError] = iter([False, ValueError("broken"), True])

    def export(spans: Sequence[Span]) -> bool:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    made = recorder(export, counts)
    for number in (1, 2, 3):
        made.add([SPAN])
        wait_until(lambda number=number: counts.total() == number, "the span was exported or lost")  # type: ignore[misc]
    made.close()
    assert counts == {"lost": 2, "exported": 1}


def test_a_collector_that_breaks_again_and_again_is_logged_once() -> None:
    counts: Counter[str] = Counter()

    def export(spans: Sequence[Span]) -> bool:
        raise ValueError("broken")

    with capture_logs() as lines:
        made = recorder(export, counts)
        for number in (1, 2, 3):
            made.add([SPAN])
            wait_until(lambda number=number: counts.total() == number, "the span was lost")  # type: ignore[misc]
        made.close()
    assert [line["event"] for line in lines] == ["traces.export_failed", "traces.lost"]


def test_the_end_waits_for_a_stuck_collector_no_longer_than_its_time() -> None:
    counts: Counter[str] = Counter()
    held = threading.Event()
    made = recorder(lambda spans: held.wait(60), counts, timeout_s=0.05)
    made.add([SPAN])
    wait_until(lambda: not made._waiting, "the first one is under way")
    made.add([SPAN])
    made.close()
    assert counts == {"lost": 1}
    held.set()
