"""The installed version of Axon. Knows no settings."""

from functools import cache


@cache
def version() -> str:
    """The installed version; ``0+source`` when the tree runs without being installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("axon-serving")
    except PackageNotFoundError:
        return "0+source"
