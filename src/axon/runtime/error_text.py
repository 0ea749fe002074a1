"""What another's error says, short enough to be part of a sentence of ours. Knows no driver."""

_MOST_CHARS = 300


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without a full stop; of an error that carries a driver's (PEP 249 wrappers, as
    SQLAlchemy's), that of the driver's, which has no statement in it."""
    return str(getattr(error, "orig", None) or error).partition("\n")[0][:_MOST_CHARS].rstrip(".")
