"""The only folder of Axon's on ``sys.path`` in vLLM's environment: it has nothing but ``axon``."""
