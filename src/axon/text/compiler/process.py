"""The process that compiles a gateway's grammars: ``python -m axon.text.compiler.process FD CPU_S``.

A grammar that makes the compiler overflow its stack, compute for ever or take all memory ends this process and nothing
else. ``FD`` is a socket, ``CPU_S`` the seconds of processor time for one task.
"""

import resource
import sys

from axon.runtime.task_program import close_inherited, run
from axon.text.compiler.messages import decode_task, encode
from axon.text.compiler.work import compiled
from axon.text.grammar_check import GrammarCheck

NAME = "axon-compiler"
_MAX_DATA_BYTES = 1 << 30
"""Memory that the process may allocate; with more, the compiler aborts."""


def main() -> None:
    descriptor = close_inherited(int(sys.argv[1]))
    check = GrammarCheck()
    run(
        descriptor,
        lambda body: encode(compiled(decode_task(body), check)),
        name=NAME,
        max_cpu_s=float(sys.argv[2]),
        limits={resource.RLIMIT_DATA: _MAX_DATA_BYTES},
    )


if __name__ == "__main__":
    main()
