"""Reads models from disk: their architecture and their tensors."""
