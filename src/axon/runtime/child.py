"""Starts a Python module as a process of its own, which is spoken to over a socket pair. Knows no message."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from axon.runtime.tasks import settled

_PLAIN = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "COVERAGE_PROCESS_START"})
_PLAIN_PREFIXES = ("PYTHON", "LC_", "COV_CORE_")


@dataclass(frozen=True, slots=True)
class Connected:
    """A started process and this end of its socket pair."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


def plain_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that any Python process may need; settings and secrets are not among them."""
    return {name: text for name, text in environ.items() if name in _PLAIN or name.startswith(_PLAIN_PREFIXES)}


async def launch_module(
    module: str,
    arguments: Callable[[int], Sequence[str]],
    *,
    pass_fds: Sequence[int] = (),
    has_secrets: bool,
    python: str = "",
    environment: Mapping[str, str] | None = None,
) -> Connected:
    """Starts ``python -P -m module``; raises ``OSError`` if the system does not let it, and then leaves nothing behind.
    With ``-P`` it imports nothing from the working directory.

    ``arguments`` is given the number of the process's socket. With ``has_secrets`` the process has our whole
    environment, otherwise a plain one; ``environment`` replaces either. ``python`` is this interpreter unless named.
    """
    inherited = None if has_secrets else plain_environment(os.environ)
    ours, theirs = socket.socketpair()
    process: asyncio.subprocess.Process | None = None
    try:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(python or sys.executable, "-P", "-m", module, *arguments(theirs.fileno())),
                pass_fds=[theirs.fileno(), *pass_fds],
                start_new_session=True,  # a signal to our process group must not end it before us
                env=inherited if environment is None else environment,
            )
        reader, writer = await asyncio.open_connection(sock=ours)
    except BaseException:
        ours.close()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await settled(asyncio.ensure_future(process.wait()))
        raise
    return Connected(process, reader, writer)
