"""Starts the servers that all tests of a run share, in a process that is no test's.

    @shared
    def shared_server(*, tls: bool = False) -> PostgresServer:
        ...

The first test that needs such a server may be one that has a loop of its own, or in which files cannot be opened or
time stands still: a start within it would fail, in one order of the tests and not in another. So a run of tests forks a
keeper before its first test (``open_keeper``). A function that is ``shared`` runs there, once for all processes of the
run, and these get a copy of what it returns: addresses and folders, by which to use the server, not to end it. The
keeper ends what it has started when the last process of the run has gone. Where there is no keeper, as in a program
that a person starts, the function runs in the process that calls it, once too.
"""

import atexit
import copyreg
import functools
import inspect
import os
import pickle
import shutil
import signal
import socket
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from _pytest.outcomes import Failed, Skipped

from tests.services.process import give_ports

P = ParamSpec("P")
T = TypeVar("T")
_Socket = socket.socket  # a test may put another one in its place
_address: str | None = None
"""Of the keeper of this run."""
_importing = threading.Lock()


def shared(make: Callable[P, T]) -> Callable[P, T]:
    """Has the function run once for a whole run of tests; its arguments and what it returns must be picklable."""
    signature, found, lock = inspect.signature(make), dict[tuple[Any, ...], T](), threading.Lock()

    @functools.wraps(make)
    def once(*args: P.args, **kwargs: P.kwargs) -> T:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        key = (*bound.args, *sorted(bound.kwargs.items()))
        with lock:
            if key not in found:
                address = _address
                found[key] = make(*args, **kwargs) if address is None else _ask(address, make, bound.arguments)
            return found[key]

    return once


def is_open() -> bool:
    """Whether this process has a keeper."""
    return _address is not None


def open_keeper(ahead: Sequence[tuple[str, str]] = ()) -> None:
    """Forks the keeper of this process and of those that are forked from it later on.

    ``ahead`` are modules and their functions, without arguments, that it calls before anybody asks.
    """
    global _address
    folder = tempfile.mkdtemp(prefix="axon-keeper-")
    address = str(Path(folder) / "socket")
    listener = _Socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(16)
    heard, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(held)
        leave_to_the_parent()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _keep(listener, heard, ahead)
    listener.close()
    os.close(heard)
    _address = address
    atexit.register(_leave, os.getpid(), pid, held)


def leave_to_the_parent() -> None:
    """What this process was to do at its end before it was forked is not its business."""
    atexit._clear()
    finalizers: Any = weakref.finalize
    finalizers._registry.clear()
    finalizers._registered_with_atexit = False


def _leave(owner: int, keeper: int, held: int) -> None:
    """At the end of the process that opened the keeper, not of one that was forked from that."""
    if os.getpid() != owner:
        return
    os.close(held)
    with suppress(ChildProcessError):
        os.waitpid(keeper, 0)


def _ask(address: str, make: Callable[..., T], arguments: dict[str, Any]) -> T:
    asking = _Socket(socket.AF_UNIX)
    asking.connect(address)
    with Connection(asking.detach()) as line:
        line.send((make.__module__, make.__qualname__, dict(arguments)))
        error, said = pickle.loads(line.recv_bytes())
    if error is not None:
        raise error
    made: T = said
    return made


def _keep(listener: socket.socket, heard: int, ahead: Sequence[tuple[str, str]]) -> NoReturn:
    """Answers until nobody holds the other end of ``heard``, then ends what was started."""
    global _address
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run's processes end first
        _address = None
        give_ports(0)
        for module, name in ahead:
            threading.Thread(target=_call, args=[module, name], daemon=True).start()
        while heard not in wait([listener, heard]):
            asked, _ = listener.accept()
            threading.Thread(target=_answer, args=[Connection(asked.detach())], daemon=True).start()
        atexit._run_exitfuncs()
    finally:
        os._exit(0)


def _call(module: str, name: str) -> None:
    with suppress(BaseException):  # told to those who ask for it
        _found(module, name)()


def _found(module: str, name: str) -> Callable[..., object]:
    """The function; two threads that import at once could meet a module that is half imported."""
    with _importing:
        found: Callable[..., object] = getattr(import_module(module), name)
    return found


def _answer(line: Connection) -> None:
    with line:
        module, name, arguments = line.recv()
        try:
            answer = pickle.dumps((None, _found(module, name)(**arguments)))
        except BaseException as error:  # that of a skipped test too
            answer = _told(error)
        with suppress(OSError):
            line.send_bytes(answer)


def _told(error: BaseException) -> bytes:
    """The error, as it is raised where somebody asked; its text where it cannot be sent."""
    try:
        return pickle.dumps((error, None))
    except Exception:
        return pickle.dumps((RuntimeError(repr(error)), None))


def _skipped(message: str) -> Skipped:
    return Skipped(message)


def _failed(message: str) -> Failed:
    return Failed(message, pytrace=False)


# By themselves they cannot be pickled: their classes say that they are elsewhere.
copyreg.pickle(Skipped, lambda error: (_skipped, (error.msg,)))
copyreg.pickle(Failed, lambda error: (_failed, (error.msg,)))
