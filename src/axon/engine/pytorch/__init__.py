"""The model in plain PyTorch on a CPU: the reference for every other backend."""
