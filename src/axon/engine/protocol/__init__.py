"""The protocol between a worker process and its engine process: messages, codec, crash note. Imports no torch."""
