"""LoRA adapters on the device: their pages of memory, the rows that each has in a step, their small products."""
