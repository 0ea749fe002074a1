"""Of vLLM, stood in for."""
