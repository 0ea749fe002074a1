"""Mixtures of experts: rows are sorted by their experts, and each expert's rows are multiplied together."""
