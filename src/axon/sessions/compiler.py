"""The process that compiles grammars, as its gateway sees it: started, asked, replaced when it dies. Knows no tenant.

The compiler is native code that runs over what clients wrote. A crash in it ends this process alone: the task is tried
once more in a new one, and one that ends that too is refused. The process has no secrets: of the gateway's environment
it gets what any Python process needs.
"""

from typing import Protocol

import msgspec
import structlog

from axon.errors import Overloaded, Unavailable
from axon.runtime.child import Connected, launch_module
from axon.runtime.task_process import Died, NotStarted, TaskProcess
from axon.text.compiler.messages import Result, Task, decode_result, encode
from axon.text.compiler.work import NOT_COMPILED

_MAX_TRIES = 2
"""Processes that one task may end. Something else may have ended the first."""
_START_S = 10.0
"""Seconds in which a process must be ready. A task that has waited for it so long is refused with 503."""
_ANSWER_S = 3.0
"""Seconds for one task, all its tries together, after which its process is killed. It is less than a request waits for
its grammars, so that a task that hangs does not take all the time of those behind it."""
_TOO_LONG = Result(problem="it takes too long to compile")

_logger = structlog.get_logger("axon.grammars")


class Compiling(Protocol):
    """Compiles one task at a time."""

    def warm(self) -> None:
        """Prepares for the first task."""
        ...

    async def run(self, task: Task) -> Result: ...
    async def aclose(self) -> None: ...


class Compiler:
    """Has grammars compiled by one process, which is started with the first task or when it is told to be warm."""

    def __init__(self, *, max_cpu_s: float = 1.0) -> None:
        """``max_cpu_s`` is the processor time that one task may take."""
        self._max_cpu_s = max_cpu_s
        self._process = TaskProcess(
            self._launch,
            on_death=lambda code, deaths: _logger.warning("grammars.compiler_died", exit_code=code, deaths=deaths),
            on_not_started=lambda reason: _logger.warning("grammars.compiler_not_started", reason=reason),
        )

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Whether a task would begin at once."""
        return self._process.is_ready

    def warm(self) -> None:
        """Starts the process, if it was not started before."""
        self._process.warm()

    async def run(self, task: Task) -> Result:
        """Returns the task's result, one task at a time; raises ``Unavailable`` if no process can be had.

        A task that crashes the process twice, or computes for too long, has a result that says so. If something else
        ended a process, the task has no result, and ``Unavailable`` is raised.

        Being cancelled ends the task with its process. Only a gateway that closes cancels one: ``Grammars`` finishes a
        task whose asker has left, and keeps its result.
        """
        num_crashes, left_s = 0, _ANSWER_S
        for _ in range(_MAX_TRIES):
            try:
                return decode_result(await self._process.ask(encode(task), start_s=_START_S, answer_s=left_s))
            except TimeoutError:
                raise Overloaded(retry_after_s=1.0) from None
            except NotStarted:
                message = "The process that compiles schemas and grammars does not start; try again soon."
                raise Unavailable(message, retry_after_s=1.0) from None
            except msgspec.MsgspecError:
                self._process.replace()  # whatever it has become, it compiles for all tenants
                message = (
                    "The process that compiles schemas and grammars gave no result that can be read; try again soon."
                )
                raise Unavailable(message, retry_after_s=1.0) from None
            except Died as death:
                if death.took_too_long:
                    return _TOO_LONG
                num_crashes += death.is_of_task
                left_s -= death.spent_s
        if num_crashes < _MAX_TRIES:
            message = "The process that compiles schemas and grammars was killed; try again soon."
            raise Unavailable(message, retry_after_s=1.0)
        return Result(problem=NOT_COMPILED)

    async def aclose(self) -> None:
        """Ends the process."""
        await self._process.aclose()

    async def _launch(self) -> Connected:
        arguments = str(self._max_cpu_s)
        return await launch_module(
            "axon.text.compiler.process", lambda socket_fd: (str(socket_fd), arguments), has_secrets=False
        )
