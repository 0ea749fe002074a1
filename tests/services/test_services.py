"""``make services``: three servers that answer at the printed addresses, and none left behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.process import listening, wait_for
from tests.services.require import require

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.services


@pytest.mark.long
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_services_run_at_the_printed_addresses_until_they_are_stopped(tmp_path: Path, stop: signal.Signals) -> None:
    require("redis-server", "rabbitmq-server", "postgres")
    output = tmp_path / "output"
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with output.open("wb") as log:
        command = [sys.executable, "-m", "tests.services"]
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
    try:
        wait_for(lambda: "Ready" in output.read_text() or process.poll() is not None, "the services are ready", 120.0)
        line = re.search(
            r"axon serve --queue (amqp://\S+) --live (redis://\S+) --store (postgresql://\S+)", _read(output)
        )
        assert line is not None, _read(output)
        ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", line.group())]
        assert [listening(port) for port in ports] == [True, True, True]
        process.send_signal(stop)
        assert process.wait(60.0) == 0
        assert [listening(port) for port in ports] == [False, False, False]
        assert [path for path in tmp_path.iterdir() if path != output] == []
    finally:
        process.kill()
        process.wait()


def test_a_missing_server_skips_here_and_fails_where_servers_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUIRE_SERVERS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-server"):
        require("no-such-server")
    monkeypatch.setenv("REQUIRE_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match="make install-services"):
        require("no-such-server")


def _read(path: Path) -> str:
    return path.read_text()
