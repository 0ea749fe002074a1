"""Failpoints: nothing unless armed, and then at the pass they are armed for."""

import os
from collections.abc import Iterator

import pytest

from axon.runtime import failpoints
from axon.runtime.failpoints import arm, failpoint


class Died(Exception):
    pass


@pytest.fixture(autouse=True)
def survive(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def die(code: int) -> None:
        raise Died(code)

    monkeypatch.setattr(os, "_exit", die)
    yield
    arm("")


def test_a_place_that_is_not_named_does_nothing() -> None:
    arm("")
    failpoint("a")
    arm("a=kill")
    failpoint("b")


def test_the_first_pass_of_a_named_place_kills() -> None:
    arm("b=stall, a=kill")
    with pytest.raises(Died, match="86"):
        failpoint("a")


def test_the_pass_can_be_counted() -> None:
    arm("a=kill:3")
    failpoint("a")
    failpoint("a")
    with pytest.raises(Died):
        failpoint("a")


@pytest.mark.parametrize("spec", ["a", "a=maim", "a=kill:0", "a=kill:soon"])
def test_what_cannot_be_understood_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="failpoint 'a'"):
        failpoints.arm(spec)
