from axon.gateway.offers.wait import State, Wait
from axon.gateway.turn.waiting import wait_body, wait_headers


def test_headers_and_body_say_state_place_and_time() -> None:
    wait = Wait(state=State.COLD, position=7, expected_s=12.34)
    assert wait_headers(wait) == {
        "x-axon-state": "cold",
        "x-axon-queue-position": "7",
        "x-axon-expected-wait-s": "12.3",
    }
    assert wait_body(wait) == {"state": "cold", "position": 7, "expected_wait_s": 12.3}


def test_a_time_that_nobody_knows_is_not_told() -> None:
    wait = Wait(state=State.LOADING, position=1)
    assert wait_headers(wait) == {"x-axon-state": "loading", "x-axon-queue-position": "1"}
    assert wait_body(wait)["expected_wait_s"] is None
    assert wait_headers(None) == {}
