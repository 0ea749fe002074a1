"""Profiles on demand: what a process computes, allocates and, as an engine, steps through. See docs/profiling.md."""
