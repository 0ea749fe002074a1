"""The engine on an NVIDIA GPU: Triton kernels, graphs over whole steps, tokens that stay on the device."""
