"""A folder to put on the path of an interpreter: it has a package ``vllm`` that computes no model."""
