"""What ``make fleet`` shows of its members' logs."""

from pathlib import Path

from axon.bootstrap.process import Up
from axon.bootstrap.ready import Ready
from axon.console.serving.screen import screen
from tests.fleet.__main__ import without_screens


def test_the_screens_of_the_members_are_left_out_and_every_other_line_stays() -> None:
    url = "http://127.0.0.1:8001"
    gateway = Ready(
        url=url, metrics_url=url, key="axk_some", key_file=Path("/d/dev-key"), models=("m",), pid=3, waits=True
    )
    worker = Up(role="worker", facts=(("Name", "worker-1"),))
    log = f"axon: Loading\n{screen(gateway)}\n{{one}}\n{screen(worker)}\nTraceback\n"
    assert without_screens(log).split() == ["axon:", "Loading", "{one}", "Traceback"]
