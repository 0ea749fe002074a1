"""Chooses tokens from logits on the CPU: adjustments, truncation, the draw."""
