"""Assembles a gateway, its parts and its front processes."""
