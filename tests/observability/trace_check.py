"""What must hold of every trace: one root, no orphan, attempts linked, steps that add up to the ledger."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from tests.journeys.server import wait_until
from tests.services.otlp import Receiver, Seen

STEPS = ("session.load", "job.queue_wait", "claim", "engine.prefill", "engine.decode")
"""They follow each other without a gap, from a turn's admission to its last token."""
TURN = ("admission", "attempt", *STEPS)
REQUEST = ("gateway.request", "job.publish", "stream.deliver")


def whole_trace(receiver: Receiver, turn_id: str, *names: str, requests: int = 1, outer: str = "") -> list[Seen]:
    """The spans of a turn's trace, once all of these names and so many requests are there; checks that they are one
    tree. ``outer`` is the caller's span."""

    def is_there() -> bool:
        spans = receiver.of_turn(turn_id)
        found = [span.name for span in spans]
        return set(names) <= set(found) and found.count("gateway.request") >= requests and not orphans(spans, outer)

    wait_until(is_there, f"the trace of {turn_id} is whole: {sorted(names)}")
    spans = receiver.of_turn(turn_id)
    assert len([span for span in spans if span.parent_id == outer]) == 1
    assert len({span.span_id for span in spans}) == len(spans), "no span came twice"
    attempts = sorted((span for span in spans if span.name == "attempt"), key=lambda span: span.start)
    assert [span.links for span in attempts] == [(), *((span.span_id,) for span in attempts[:-1])]
    return spans


def orphans(spans: Collection[Seen], outer: str) -> list[Seen]:
    """Spans whose parent is neither in the trace nor the caller's."""
    known = {outer, *(span.span_id for span in spans)}
    return [span for span in spans if span.parent_id not in known]


def named(spans: Collection[Seen], name: str) -> list[Seen]:
    return sorted((span for span in spans if span.name == name), key=lambda span: span.start)


def seconds(spans: Collection[Seen], *names: str) -> float:
    return sum(span.seconds for span in spans if span.name in names)


def check_sums(spans: Collection[Seen], ledger: Mapping[str, Any]) -> None:
    """Both come from the same clocks: the steps add up to the ledger's whole within 5 %, and so do their groups."""
    whole_s = sum(ledger[name] for name in ("queue_s", "prefill_s", "decode_s", "replay_s"))
    assert seconds(spans, *STEPS) == pytest.approx(whole_s, rel=0.05, abs=0.002)
    if ledger["attempts"] == 1:
        waits = ("session.load", "job.queue_wait", "claim")
        assert seconds(spans, *waits) == pytest.approx(ledger["queue_s"], rel=0.05, abs=0.002)
        assert seconds(spans, "engine.prefill") == pytest.approx(ledger["prefill_s"], rel=0.05, abs=0.002)
        assert seconds(spans, "engine.decode") == pytest.approx(ledger["decode_s"], rel=0.05, abs=0.002)
