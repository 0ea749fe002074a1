"""Assembles control, with what it launches and what it measures."""
