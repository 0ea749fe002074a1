"""The chat page's time to the first token, step by step out of a trace: each step is there once, and none is lost."""

from typing import Any

import pytest
from benchmarks.pages import STEPS, steps_ms

MS = 1_000
"""A trace counts in microseconds."""


def event(name: str, at_ms: float, *, takes_ms: float = 0, **about: Any) -> dict[str, Any]:
    return {"name": name, "ts": at_ms * MS, "dur": takes_ms * MS, "args": {"data": about}}


def key(at_ms: float) -> dict[str, Any]:
    return event("EventDispatch", at_ms, type="keydown")


def trace() -> list[dict[str, Any]]:
    timing = {"requestTime": 1.003, "sendEnd": 1.0, "receiveHeadersEnd": 12.0}  # in seconds, then milliseconds
    return [
        event("ResourceSendRequest", 990, url="http://a/v1/responses", requestId="old"),
        key(1000),
        event("ResourceSendRequest", 1001, url="http://a/v1/models", requestId="1"),
        event("ResourceSendRequest", 1002, url="http://a/v1/responses", requestId="2"),
        event("ResourceReceivedData", 1014, requestId="1"),
        event("ResourceReceiveResponse", 1017, requestId="2", timing=timing),
        event("ResourceReceivedData", 1018, requestId="2"),
        event("Paint", 1019, takes_ms=1),
        event("ResourceReceivedData", 1022, requestId="2"),
        event("first-token", 1030),
        event("Paint", 1031, takes_ms=2),
        event("Paint", 1034, takes_ms=1),
        event("ResourceReceivedData", 1035, requestId="2"),
        key(1040),
    ]


def test_the_steps_go_from_the_key_over_the_wire_to_the_paint() -> None:
    assert list(steps_ms(trace()).values()) == pytest.approx([2, 2, 11, 2, 5, 8, 3])


def test_the_steps_add_up_to_the_time_from_the_key_to_the_end_of_the_paint() -> None:
    steps = steps_ms(trace()[::-1])
    assert tuple(steps) == STEPS
    assert sum(steps.values()) == pytest.approx(33)
