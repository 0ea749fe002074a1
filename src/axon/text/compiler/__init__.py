"""Compiling of clients' grammars in a process of its own: its messages, what it does and its program."""
