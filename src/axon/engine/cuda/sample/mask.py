"""Forbids tokens of some rows on the device, by the masks of their grammars. Draws nothing."""

import triton.language as tl

from axon.engine.cuda.jit import kernel


@kernel
def mask_rows(
    logits: tl.tensor,
    vocab_size: tl.tensor,
    rows: tl.tensor,
    words: tl.tensor,
    num_words: tl.tensor,
    WIDTH: tl.constexpr,
) -> None:
    """Sets the logits of ``rows`` to -inf wherever the bit of the token is 0 in the row of ``words`` of same index."""
    program = tl.program_id(0).to(tl.int64)
    row = tl.load(rows + program).to(tl.int64)
    id = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = id < vocab_size
    word = tl.load(words + program * num_words + id // 32, mask=inside, other=-1)
    is_forbidden = inside & (((word >> (id % 32)) & 1) == 0)
    lowest = tl.full([WIDTH], float("-inf"), tl.float32).to(logits.dtype.element_ty)
    tl.store(logits + row * vocab_size + id, lowest, mask=is_forbidden)
