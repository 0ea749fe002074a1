"""How a pair of texts is cut to a number of tokens: the longer one first, as tokenizers do. Pure."""


def pair_lengths(first: int, second: int, limit: int) -> tuple[int, int]:
    """The tokens that each text keeps so that both have ``limit`` together: the longer text is cut until both are
    equally long, then both are; an odd token goes to the one that was longer, or to the second."""
    limit = max(0, limit)
    if first + second <= limit:
        return first, second
    shorter, is_swapped = min(first, second), first > second
    longer = limit - shorter
    if longer < shorter:
        shorter = limit // 2
        longer = limit - shorter
    return (longer, shorter) if is_swapped else (shorter, longer)
