"""Embedding models: inputs gathered into microbatches, and the encoder that makes vectors of them."""
