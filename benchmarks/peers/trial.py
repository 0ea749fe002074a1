"""A peer started once and asked a little: does it answer, and how fast? Installs nothing."""

import asyncio
import signal
import tempfile
from pathlib import Path

from benchmarks.measures.load import make_prompt, run_load
from benchmarks.peers.engines import Engine
from benchmarks.peers.server import NotServing, running

FIRST_START_S = 1800.0
"""vLLM compiles the model when it is started for the first time."""
_NUM_STREAMS, _NUM_WORDS, _NUM_TOKENS = 4, 128, 64


def tokens_per_s(engine: Engine, num_streams: int = _NUM_STREAMS) -> float:
    """Tokens a second of a short load with prompts long enough for its matrix kernels; raises NotServing with the
    reason, or with the signal that ended it."""
    with tempfile.TemporaryDirectory() as name, running(engine.server(Path(name))) as server:
        server.wait(FIRST_START_S)
        endpoint = engine.endpoint(server.port, Path(name))
        prompts = [make_prompt(f"trial/{index}", _NUM_WORDS) for index in range(max(2, num_streams))]
        try:
            load = run_load(endpoint, prompts, num_streams=num_streams, num_tokens=_NUM_TOKENS)
            answers, wall_s = asyncio.run(load)
        except ExceptionGroup as errors:
            code = server.exit_code(wait_s=5.0)
            raise NotServing(ended(code) if code is not None else repr(errors.exceptions[0])) from errors
        return sum(each.num_tokens for each in answers) / wall_s


def ended(code: int) -> str:
    """How a process ended, for people."""
    return f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with {code}"
