"""A session: its conversation, the version that holds it, the worker with its KV blocks, its erasure. Values only."""
