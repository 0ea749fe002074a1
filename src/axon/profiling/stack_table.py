"""A bounded table of call stacks and how much time was seen in each. No I/O, knows no thread."""

from types import CodeType, FrameType

from axon.profiling.places import place_of
from axon.profiling.profile import Stack

MAX_STACKS = 8192
MAX_DEPTH = 160
OTHERS = "(stacks beyond the table)"
CUT = "(frames below are cut)"

_Key = tuple[str, tuple[int, ...]]


class StackTable:
    """Adds samples up by thread and stack; what does not fit is counted together."""

    def __init__(self, max_stacks: int = MAX_STACKS, max_depth: int = MAX_DEPTH) -> None:
        self._max_stacks, self._max_depth = max_stacks, max_depth
        self._codes: dict[int, CodeType] = {}
        """Code objects by their ids: hashing one by its value takes longer, and the id of a kept one is not reused."""
        self._sums: dict[_Key, list[int]] = {}
        self._named: dict[tuple[str, ...], list[int]] = {}
        self.missed = 0

    def add(self, thread: str, frame: FrameType | None, cpu_us: int) -> None:
        """Counts one sample of a thread, whose innermost frame is ``frame``."""
        codes: list[CodeType] = []
        while frame is not None and len(codes) < self._max_depth:
            codes.append(frame.f_code)
            frame = frame.f_back
        key = (thread, tuple(map(id, codes)))
        sums = self._sums.get(key)
        if sums is None:
            if len(self._sums) >= self._max_stacks:
                self.missed += 1
                self.add_named((thread, OTHERS), cpu_us)
                return
            self._codes.update(zip(key[1], codes, strict=True))
            sums = self._sums[key] = [0, 0, int(frame is not None)]
        sums[0] += cpu_us
        sums[1] += 1

    def add_named(self, names: tuple[str, ...], cpu_us: int, samples: int = 1) -> None:
        """Counts time of a stack that is given by names."""
        sums = self._named.setdefault(names, [0, 0])
        sums[0] += cpu_us
        sums[1] += samples

    def result(self) -> tuple[list[str], list[Stack]]:
        """The frames' names, and the stacks as indices into them; stacks with the same names are one."""
        merged = {names: list(sums) for names, sums in self._named.items()}
        places = {id_: place_of(code) for id_, code in self._codes.items()}
        for (thread, ids), (cpu_us, samples, is_cut) in self._sums.items():
            inner = [places[id_] for id_ in reversed(ids)]
            sums = merged.setdefault((thread, *([CUT] if is_cut else []), *inner), [0, 0])
            sums[0] += cpu_us
            sums[1] += samples
        index: dict[str, int] = {}
        stacks = [
            Stack(tuple(index.setdefault(name, len(index)) for name in names), cpu_us, samples)
            for names, (cpu_us, samples) in merged.items()
        ]
        return list(index), stacks
