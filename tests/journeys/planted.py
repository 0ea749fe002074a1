"""Plants crashes: texts that end, stall or fill the process that compiles them as grammars or renders them.

``python_path`` makes a folder for the path of a server under test. Python imports its ``sitecustomize`` at the start of
each process, which plants them in a gateway's compiler and renderers and in an engine, and does nothing in any other.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[2]


def python_path(folder: Path) -> str:
    """The PYTHONPATH of processes in which crashes are planted; writes into the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text("from tests.journeys import planted\n\nplanted.plant()\n")
    return os.pathsep.join(map(str, (folder, _REPOSITORY / "src", _REPOSITORY)))


def plant() -> None:
    """Plants what this process may have."""
    if "axon.text.compiler.process" in sys.orig_argv:
        _in_compiler()
    if "axon.gateway.pages.rendering.process" in sys.orig_argv:
        _in_renderer()
    if "axon.engine.process" in sys.orig_argv:
        _in_engine()


def _in_compiler() -> None:
    from axon.text.grammar import Grammar
    from axon.text.grammar_check import GrammarCheck

    problem = GrammarCheck.problem

    def planted(check: GrammarCheck, grammar: Grammar) -> str:
        _act(grammar.text)
        return problem(check, grammar)

    setattr(GrammarCheck, "problem", planted)  # noqa: B010


def _in_renderer() -> None:
    from axon.gateway.pages.rendering import markdown

    render = markdown.render

    def planted(text: str) -> str:
        _act(text)
        return render(text)

    setattr(markdown, "render", planted)  # noqa: B010


def _act(text: str) -> None:
    """Does what is planted in a text."""
    if "planted crash" in text:
        os.abort()
    if "planted loop" in text:
        while True:
            pass
    if "planted stall" in text:
        time.sleep(3600)
    if "planted kill" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if "planted growth" in text:
        bytearray(2 << 30)


def _in_engine() -> None:
    from axon.engine.grammar.grammars import Grammars

    compiled = Grammars._compile

    def planted(grammars: Grammars, text: str, vocabulary: Any) -> Any:
        if "planted in engines" in text:
            os.abort()
        return compiled(grammars, text, vocabulary)

    setattr(Grammars, "_compile", planted)  # noqa: B010
