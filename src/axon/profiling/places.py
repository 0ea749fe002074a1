"""Names of places in the code, as profiles write them: a function, and its file as Python imports it. No I/O."""

import sys
from functools import lru_cache
from types import CodeType


def place_of(code: CodeType) -> str:
    """``Worker.run (axon/worker/worker.py:141)``: the function, and where it begins."""
    return f"{code.co_qualname} ({short_path(code.co_filename)}:{code.co_firstlineno})"


@lru_cache(maxsize=4096)
def short_path(path: str) -> str:
    """The file's path below the folder that Python found it in, so that profiles tell nothing of the machine."""
    for folder in sorted(filter(None, sys.path), key=len, reverse=True):
        if path.startswith(folder.rstrip("/") + "/"):
            return path[len(folder.rstrip("/")) + 1 :]
    return "/".join(path.split("/")[-2:]) if path.startswith("/") else path
