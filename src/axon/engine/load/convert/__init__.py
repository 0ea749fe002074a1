"""Turns a GGUF file into a model folder in the layout of Hugging Face."""
