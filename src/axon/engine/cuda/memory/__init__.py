"""Memory of the device beside the weights: KV blocks, copies of them on the host, buffers of a step."""
