"""Processor time of each thread of this process, from Linux's /proc. Elsewhere nothing is known."""

import contextlib
import os
from pathlib import Path

_TASKS = Path("/proc/self/task")
_MAX_THREADS = 512
_TICK_US = 1_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)


class ThreadTimes:
    """Keeps the files of the threads open, because they are read many times a second; close it."""

    def __init__(self) -> None:
        self._files: dict[int, tuple[int, bool]] = {}
        """Descriptor of each thread's file, and whether that is ``schedstat``."""

    def microseconds(self, native_id: int) -> int | None:
        """The thread's processor time since its start; None if it has ended or the system does not tell."""
        file = self._files.get(native_id) or self._open(native_id)
        if file is None:
            return None
        descriptor, is_schedstat = file
        try:
            text = os.pread(descriptor, 512, 0)
            return parse_schedstat(text) if is_schedstat else parse_stat(text)
        except (OSError, ValueError, IndexError):
            os.close(self._files.pop(native_id)[0])
            return None

    def all(self) -> dict[int, int]:
        """The processor time of every thread, by its native id."""
        try:
            ids = sorted(int(each) for each in os.listdir(_TASKS))[:_MAX_THREADS]
        except OSError:
            return {}
        return {each: time for each in ids if (time := self.microseconds(each)) is not None}

    def close(self) -> None:
        """Closes all files."""
        for descriptor, _ in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def _open(self, native_id: int) -> tuple[int, bool] | None:
        if len(self._files) >= _MAX_THREADS:
            return None
        for name in ("schedstat", "stat"):  # the first has nanoseconds, and some kernels lack it
            with contextlib.suppress(OSError):
                descriptor = os.open(_TASKS / str(native_id) / name, os.O_RDONLY | os.O_CLOEXEC)
                self._files[native_id] = descriptor, name == "schedstat"
                return self._files[native_id]
        return None


def parse_schedstat(text: bytes) -> int:
    """Microseconds on a core: the file's first number is in nanoseconds."""
    return int(text.split()[0]) // 1000


def parse_stat(text: bytes) -> int:
    """Microseconds on a core: user and system time in ticks, behind the name, which may hold blanks and brackets."""
    fields = text[text.rindex(b")") + 1 :].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_US


def name_of(native_id: int) -> str:
    """The thread's name as the system shows it."""
    try:
        return (_TASKS / str(native_id) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "thread"
