"""The contract of grammars, as steps and their planning use it: matchers, masks, who compiles. Names no library."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from axon.engine.protocol.messages import Add, Refused


class Mask(Protocol):
    """The tokens that a grammar allows at one draw."""

    @property
    def masks(self) -> "Masks":
        """All masks of its span."""
        ...

    @property
    def is_alone(self) -> bool:
        """Whether it is the only one of its span, which has no drafts."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether no token is allowed; waits for the mask."""
        ...

    def words(self) -> Any:
        """Words of 32 bits in numpy, a bit for each token, the lowest id in the lowest bit; waits for the mask."""
        ...

    def allowed_ids(self) -> list[int]:
        """The tokens, in ascending order; waits for the mask."""
        ...


class Masks(Protocol):
    """The masks of one span: of its draw, and of the draw behind each of its draft tokens."""

    def learn(self, token: int) -> None:
        """Takes in the token before the span's draw, if that was not known when the span was planned."""
        ...

    def of(self, index: int) -> Mask:
        """The mask of the span's draw, or, from 1 on, of the draw behind a draft token."""
        ...


class Matcher(Protocol):
    """Where one sequence stands in its grammar."""

    @property
    def eos_ids(self) -> frozenset[int]:
        """The tokens that end an answer: allowed only where the grammar may end."""
        ...

    @property
    def problem(self) -> str:
        """Why the parser has failed, so that no mask can be made any more; empty while it works."""
        ...

    def learn(self, position: int, token: int) -> None:
        """Takes in the output token of a position, unless it has taken it in already."""
        ...

    def legal(self, token_ids: Sequence[int]) -> list[int]:
        """The longest prefix of the tokens that may come next, up to the first end token."""
        ...

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as the grammar leaves no choice."""
        ...

    def masks(self, position: int, drafts: Sequence[int], banned: Sequence[Collection[int]]) -> Masks:
        """The masks of a draw and of those behind draft tokens, to be filled later.

        ``banned`` are the tokens, for each draw, that are forbidden unless the grammar allows no other.
        """
        ...


class Compiler(Protocol):
    """Compiles the grammars of new sequences and fills the masks of steps, in threads beside the computation."""

    @property
    def pending_ids(self) -> list[str]:
        """The sequences whose grammars are not compiled yet."""
        ...

    def submit(self, add: Add) -> None:
        """Takes in a sequence; ``take`` gives it back."""
        ...

    def drop(self, ids: Iterable[str]) -> None:
        """Forgets sequences; unknown ids are ignored."""
        ...

    def take(self, *, may_wait: bool) -> list[tuple[Add, Matcher | Refused]]:
        """The sequences whose grammars are compiled by now; with ``may_wait`` it waits a little for one."""
        ...

    def begin(self, masks: Sequence[Masks]) -> None:
        """Begins to fill the masks of a step; whoever asks for one of them waits for it."""
        ...

    def close(self) -> None:
        """Ends its threads."""
        ...
