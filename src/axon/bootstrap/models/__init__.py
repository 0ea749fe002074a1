"""Finds the files of a model or version, checks that they can run here, and reads what they say of it."""
