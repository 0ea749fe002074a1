"""The package ``axon`` for an interpreter of another environment, whose packages are its own.

Axon may lie in a folder with all packages of its environment, which must not be found by vLLM's interpreter: they have
other versions there. So this file is found in their place, and its submodules in the real package's folder.
"""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[3])]
