"""The process that renders texts: ``python -m axon.gateway.pages.rendering.process FD CPU_S``.

A text that makes a regular expression backtrack for ever or swells to fill all memory ends this process and nothing
else. ``FD`` is a socket, ``CPU_S`` the seconds of processor time for one text.
"""

import os
import resource
import sys

from axon.gateway.pages.rendering.answers import NOT_FORMATTED, answer_of
from axon.gateway.pages.rendering.markdown import render, warm
from axon.runtime.task_program import close_inherited, run

NAME = "axon-renderer"
_MAX_BYTES = 256 << 20
"""Memory that the process may map. It has mapped about 40 MB when it is ready."""
_NICENESS = 5
"""It yields to what writes streams."""


def answer(body: bytes) -> bytes:
    """Returns the answer to a task, a text."""
    try:
        return answer_of(render(body.decode()))
    except MemoryError:
        raise  # an earlier text may have taken the memory: this one is tried again in a new process
    except Exception:  # the libraries raise errors of many kinds; their words may be a client's
        return NOT_FORMATTED


def main() -> None:
    descriptor = close_inherited(int(sys.argv[1]))
    warm()
    os.nice(_NICENESS)
    run(descriptor, answer, name=NAME, max_cpu_s=float(sys.argv[2]), limits={resource.RLIMIT_AS: _MAX_BYTES})


if __name__ == "__main__":
    main()
