"""Assembles workers: one by itself, and those inside ``axon serve``."""
