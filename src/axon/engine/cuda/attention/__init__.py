"""Attention on the device: kernels for decodes and for prompt chunks, and the rotary embedding."""
