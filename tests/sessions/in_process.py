"""Compiles in the test's own process: for tests that are about something else than the compiler's process."""

from axon.text.compiler.messages import Result, Task
from axon.text.compiler.work import compiled
from axon.text.grammar_check import GrammarCheck


class InProcess:
    """A compiler without a process; counts what it has compiled."""

    def __init__(self) -> None:
        self._check = GrammarCheck()
        self.tasks: list[Task] = []

    def warm(self) -> None: ...

    async def run(self, task: Task) -> Result:
        self.tasks.append(task)
        return compiled(task, self._check)

    async def aclose(self) -> None: ...
