"""Ports for servers: what one process has had, no other one and no later call gets."""

import pytest

from tests.services import process
from tests.services.process import PORT_SHARE, free_port, give_ports


@pytest.fixture(autouse=True)
def _unused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_had_ports", set())
    monkeypatch.setenv(PORT_SHARE, "0")


def ports(count: int) -> set[int]:
    return {free_port() for _ in range(count)}


def test_a_process_gets_no_port_twice() -> None:
    assert len(ports(1000)) == 1000


def test_processes_side_by_side_choose_out_of_others() -> None:
    of_each = []
    for number in range(3):
        give_ports(number)
        of_each.append(ports(300))
    assert sum(map(len, of_each)) == len(set.union(*of_each))


def test_a_process_that_has_had_half_of_its_ports_begins_again() -> None:
    assert len(ports(4000)) < 4000
    assert 10_240 <= free_port() < 32_768
