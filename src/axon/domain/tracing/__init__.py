"""Traces: which spans a request and a turn yield, and which of them are kept. Values and pure functions only."""
