"""Tenants, their keys, plans and limits, and how much of them is in use."""
