"""A program that does tasks of tests: ``python -m tests.runtime.done_tasks FD``."""

import os
import resource
import signal
import sys
import time

from axon.runtime.task_program import close_inherited, run


def done(body: bytes) -> bytes:
    verb, _, rest = body.decode().partition(" ")
    match verb:
        case "loop":
            while True:
                pass
        case "sleep":
            time.sleep(3600)
        case "abort":
            os.abort()
        case "fail":
            raise ValueError
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "grow":
            bytearray(1 << 30)
    return rest.encode()


if __name__ == "__main__":
    run(
        close_inherited(int(sys.argv[1])),
        done,
        name="done-tasks",
        max_cpu_s=0.3,
        limits={resource.RLIMIT_AS: 512 << 20},
    )
