"""The model on an NVIDIA GPU: Triton kernels, CUDA graphs over whole steps, tokens that stay on the device."""
