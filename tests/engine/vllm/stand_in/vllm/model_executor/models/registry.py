"""The table of models."""

MODELS = {
    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
    "FalconH1ForCausalLM": ("falcon_h1", "FalconH1ForCausalLM"),
}
