"""The ports of another process on this machine, over a Unix socket."""
