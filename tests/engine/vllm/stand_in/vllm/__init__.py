"""A scripted stand-in for vLLM: the part of its interface that Axon uses, over arithmetic in place of a model.

The next token is a function of all tokens before it, so a replay goes on as the answer would have. Some prompts are
deadly, as in the echo engine.
"""

__version__ = "0.0-stand-in"
