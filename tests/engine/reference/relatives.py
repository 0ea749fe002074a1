"""The prompts of the tiny random models' reference. Knows no model."""

PROMPTS = [[(7 * index + 3 * length) % 250 for index in range(length)] for length in (1, 5, 16, 40, 130)]
NUM_TOKENS = 24
"""Of an answer."""
