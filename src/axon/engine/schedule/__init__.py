"""Decides what each step computes: slots, blocks, token budgets, tiers, drafts. Imports no torch and does no I/O."""
