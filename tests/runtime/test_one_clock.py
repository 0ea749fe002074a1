"""One clock: production code reads time from the Clock that it is given."""

import re
from pathlib import Path

import axon

ROOT = Path(axon.__file__).parent
READS = re.compile(r"\btime\.(time|monotonic|perf_counter)(_ns)?\(|loop(\(\))?\.time\(")
ALLOWED = {
    "runtime/clock.py": "the clock itself",
    "gateway/http/middleware.py": "times each request, and the outages that requests meet",
    "gateway/grpc/call.py": "times each call, as the middleware times each request",
    "gateway/responses/socket_request.py": "times each event of a WebSocket, as the middleware times each request",
    "adapters/live/buffered_listener.py": "sets a timer of the event loop, and reads the time that the timer goes by",
    "worker/emit.py": "the same, for rounds of tokens",
    "runtime/datafolder.py": "waits for a file's lock before there is a clock",
    "runtime/process_age.py": "asks the kernel for the age of the process",
    "adapters/launch/records.py": "waits for a file's lock in a thread, whatever the clock of the replicas says",
    "profiling/sampler.py": "times samples of the real process in a thread",
    "profiling/memory.py": "the same",
    "client.py": "imports nothing of the server, so that it can be copied into another program",
}
HOT = ("engine",)
"""Packages whose hot paths read the time themselves."""


def test_only_the_clock_reads_time() -> None:
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*.py")]
    found = {str(path) for path in paths if path.parts[0] not in HOT and READS.search((ROOT / path).read_text())}
    assert found == ALLOWED.keys()
