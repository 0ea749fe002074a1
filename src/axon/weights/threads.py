"""The threads that read and write models' files."""

from axon.runtime.file_threads import FileThreads

THREADS = FileThreads("axon-weights", 32)
