"""``axon fleet status``, from a shell and as it is printed."""

import pytest

from axon.console.operations.fleet import _show
from tests.console.models.test_registry import refused
from tests.console.program import Axon
from tests.gateway.admin.test_fleet import report


def test_a_fleet_is_asked_of_a_shared_live_alone(axon: Axon) -> None:
    refused(axon, 2, "--live", "fleet", "status")


def test_the_screen_shows_what_is_wanted_what_runs_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    _show(report(5.0), age_s=2.4, num_decisions=1)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == "Led by control-1 (term 3, launcher process), 2 s ago."
    assert "small# 2 1 1 0 3 jobs wait" in shown
    assert "small#-1 small@v1 waiting 1970-01-01T00:00:00Z 2 z1 no memory" in shown
    assert "1970-01-01T00:00:05Z ensure small#-1 2 wanted" in shown
    _show(report(5.0), age_s=2.4, num_decisions=0)
    assert "ensure" not in capsys.readouterr().out


def test_a_worker_is_drained_by_a_server_that_answers(axon: Axon) -> None:
    refused(axon, 1, "No server answers", "fleet", "drain", "w-1", "--url", "127.0.0.1:1", "--key", "sk")
