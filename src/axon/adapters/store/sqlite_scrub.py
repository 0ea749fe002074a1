"""Takes erased text out of SQLite's write-ahead log, soon after it was erased. Knows no table.

``secure_delete`` overwrites what is erased in the database file, but copies of its pages stay in the log until a
checkpoint that also cuts the log off. SQLite makes one only when the log is long, which on a quiet server is never.
"""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import structlog

_LOCK_S = 0.1
"""Seconds that the last part of a checkpoint waits for readers; writers wait as long."""
_PAUSE_S = 0.25
"""Seconds from an erasure to the checkpoint, so that a burst of them has one, and between attempts."""
_ATTEMPTS = 240
"""With the pauses, one to two minutes. After that the log is cut off with the next erasure or start."""

_NEXT = "end programs that hold the database open; it is tried again with the next erasure or start"
_logger = structlog.get_logger("axon.store")


class Scrubber:
    """Cuts the log off in a thread of its own, once for all erasures that come before it begins."""

    def __init__(self, path: Path, *, pause_s: float = _PAUSE_S, attempts: int = _ATTEMPTS) -> None:
        self._path, self._pause_s, self._attempts = path, pause_s, attempts
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-scrub")
        self._lock = threading.Lock()
        self._is_due = False
        self._closing = threading.Event()

    def note_erased(self) -> None:
        """Has the log cut off soon; returns at once. Any thread may call it, after the commit."""
        with self._lock:
            if self._is_due or self._closing.is_set():
                return
            self._is_due = True
            self._thread.submit(self._scrub)  # with the lock: a thread pool that was shut down would raise

    def close(self) -> None:
        """Returns when the last attempt has ended; waits for no reader."""
        with self._lock:
            self._closing.set()
        self._thread.shutdown()

    def _scrub(self) -> None:
        self._closing.wait(self._pause_s)
        with self._lock:
            self._is_due = False  # what is erased from here on gets a checkpoint of its own
        why = "a reader does not end"
        for _ in range(self._attempts):
            try:
                if self._is_cut_off():
                    return
            except sqlite3.Error as error:
                why = str(error)
            if self._closing.wait(self._pause_s):
                return
        _logger.warning("erasure.incomplete", error=why, next=_NEXT)

    def _is_cut_off(self) -> bool:
        """Copies the log's pages beside readers and writers, then stops writers for the moment that the cut takes."""
        with closing(sqlite3.connect(self._path, timeout=_LOCK_S, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            (is_busy, *_rest) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy
