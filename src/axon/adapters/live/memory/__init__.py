"""Twins of the live ports, in the memory of one process."""
