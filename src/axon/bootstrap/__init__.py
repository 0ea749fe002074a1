"""Puts processes together: the only package that names an adapter."""
