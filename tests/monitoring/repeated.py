"""Does something again and again beside the test. Knows nothing of what it does."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx


@contextmanager
def repeated(act: Callable[[], object], *, every_s: float) -> Iterator[None]:
    """Does it again and again in a thread, until the block ends; waits for the one that is going on."""
    ends = threading.Event()

    def run() -> None:
        while not ends.is_set():
            with suppress(httpx.HTTPError, AssertionError):
                act()
            ends.wait(every_s)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(60)
