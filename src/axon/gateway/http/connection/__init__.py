"""Connections: accepts them, bounds them, and speaks HTTP and WebSocket on them. Knows no route."""
