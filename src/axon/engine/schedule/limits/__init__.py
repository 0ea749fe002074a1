"""How many prompt and draft tokens a step may take on, learned from what steps cost. Reads no clock."""
